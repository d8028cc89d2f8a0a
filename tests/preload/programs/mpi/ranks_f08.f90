! The same with the module of MPI 3 and a thread level.
program ranks
  use mpi_f08
  use iso_c_binding
  implicit none
  interface
    subroutine show(rank) bind(c, name='show_rank')
      import c_int
      integer(c_int), value :: rank
    end subroutine
  end interface
  integer :: rank, provided
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call show(int(rank, c_int))
  call MPI_Finalize()
end program
