! Known traffic between three MPI ranks, through one of Fortran's three interfaces:
!   -DMPIF_H: include 'mpif.h'      -DMPI_MODULE: use mpi      -DMPI_F08: use mpi_f08
! Rank r sends 10 integers to the next, 1,000 bytes come from rank 1 by a broadcast, each rank gives 8 (in place) to all
! others, a request of 100 bytes is started twice, and a reduction of 3 doubles goes to rank 2.
program traffic
#ifdef MPI_F08
  use mpi_f08
#endif
#ifdef MPI_MODULE
  use mpi
#endif
  implicit none
#ifdef MPIF_H
  include 'mpif.h'
#endif
#ifdef MPI_F08
  type(MPI_Request) :: request, persistent
  type(MPI_Comm) :: copy
#else
  integer :: request, persistent, copy
#endif
  integer :: rank, error, next, before, i
  integer :: out(1000), in(1000)
  double precision :: one(3), sum(3)

  out = 1
  one = 1
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  next = modulo(rank + 1, 3)
  before = modulo(rank + 2, 3)
  call MPI_Comm_dup(MPI_COMM_WORLD, copy, error)
  call MPI_Isend(out, 10, MPI_INTEGER, next, 0, copy, request, error)
  call MPI_Recv(in, 10, MPI_INTEGER, before, 0, copy, MPI_STATUS_IGNORE, error)
  call MPI_Wait(request, MPI_STATUS_IGNORE, error)
  call MPI_Comm_free(copy, error)
  call MPI_Bcast(in, 1000, MPI_BYTE, 1, MPI_COMM_WORLD, error)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, in, 8, MPI_BYTE, MPI_COMM_WORLD, error)
  call MPI_Send_init(out, 100, MPI_BYTE, next, 0, MPI_COMM_WORLD, persistent, error)
  do i = 1, 2
     call MPI_Start(persistent, error)
     call MPI_Recv(in, 100, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
     call MPI_Wait(persistent, MPI_STATUS_IGNORE, error)
  end do
  call MPI_Request_free(persistent, error)
  call MPI_Reduce(one, sum, 3, MPI_DOUBLE_PRECISION, MPI_SUM, 2, MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
end program traffic
