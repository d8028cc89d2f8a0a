! Heat in a rod of two pieces, one for each of two ranks, through one of Fortran's interfaces to MPI:
!   -DMPIF_H: include 'mpif.h'      -DMPI_F08: use mpi_f08
!
!     stencil ITERATIONS         each rank has 100 x 150 values and gives its edge of 150 to the other every time
program stencil
#ifdef MPI_F08
  use mpi_f08
#endif
  implicit none
#ifdef MPIF_H
  include 'mpif.h'
#endif
  integer, parameter :: x = 100, y = 150
  integer :: rank, error, iterations, i, k
  character(len=16) :: argument
  double precision :: now(y, 0:x + 1), next(y, 0:x + 1)

  call get_command_argument(1, argument)
  read (argument, *) iterations
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  now = rank
  next = rank
  do i = 1, iterations
    if (rank == 0) then
      call MPI_Sendrecv(now(1, x), y, MPI_DOUBLE_PRECISION, 1, 0, now(1, x + 1), y, MPI_DOUBLE_PRECISION, 1, 0, &
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    else
      call MPI_Sendrecv(now(1, 1), y, MPI_DOUBLE_PRECISION, 0, 0, now(1, 0), y, MPI_DOUBLE_PRECISION, 0, 0, &
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    end if
    do k = 1, x
      next(:, k) = (now(:, k - 1) + 2 * now(:, k) + now(:, k + 1)) / 4
    end do
    now(:, 1:x) = next(:, 1:x)
  end do
  if (now(1, 1) < 0) print *, 'impossible'
  call MPI_Finalize(error)
end program
