! A Fortran program of coarrays: its images are the ranks, and it has no call to MPI of its own.
program images
  use iso_c_binding, only: c_int
  implicit none
  interface
    subroutine show_rank(rank) bind(c)
      import :: c_int
      integer(c_int), value :: rank
    end subroutine show_rank
  end interface
  integer :: total[*]
  call show_rank(int(this_image() - 1, c_int))
  total = this_image()
  call co_sum(total)
  if (total /= num_images() * (num_images() + 1) / 2) error stop 5
  sync all
end program images
