! An MPI program in Fortran, as the NPB programs are.
program ranks
  use mpi
  use iso_c_binding
  implicit none
  interface
    subroutine show(rank) bind(c, name='show_rank')
      import c_int
      integer(c_int), value :: rank
    end subroutine
  end interface
  integer :: rank, error
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call show(int(rank, c_int))
  call MPI_Finalize(error)
end program
