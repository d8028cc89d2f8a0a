! A program that tunes itself: a matrix product whose tile is chosen from the effective cache sizes, as tile_size.c.
!
!   tile_size_f [PROFILE [N]]
program tile_size_f
   use, intrinsic :: iso_c_binding
   use servet
   implicit none
   integer, parameter :: level = 2, fallback = 64
   real(8), parameter :: agreement = 1d-9  ! sums of N products of numbers below 1, in another order
   type(c_ptr) :: profile
   type(servet_error) :: error
   character(len=4096) :: path, number
   integer(c_int32_t) :: pus(1), sharers
   integer(c_size_t) :: known
   integer(c_int64_t) :: bytes
   integer :: n, tile, state, status
   real(8) :: plain_s, tiled_s
   real(8), allocatable :: a(:, :), b(:, :), plain(:, :), tiled(:, :)

   n = 200
   if (command_argument_count() >= 2) then
      call get_command_argument(2, number)
      read (number, *, iostat=state) n
      if (state /= 0 .or. n < 1 .or. n > 4096) call fail('expected N from 1 to 4096')
   end if
   if (command_argument_count() >= 1) then
      call get_command_argument(1, path)
      status = servet_profile_open(path=trim(path)//c_null_char, profile=profile, error=error)
   else
      status = servet_profile_open(profile=profile, error=error)
      if (status < 0) status = servet_topology_open(profile, error)
   end if
   if (status < 0) call fail(servet_error_line(error))
   known = servet_pus(profile, pus, 1_c_size_t)
   sharers = max(servet_cache_sharers(profile, level, pus(1)), 1)
   bytes = servet_cache_bytes(profile, level, pus(1))
   if (bytes == 0) status = servet_cache_interval(profile, level, pus(1), low_bytes=bytes)
   tile = int(sqrt(real(bytes, 8) / sharers / (3 * 8)))
   if (tile < 1) tile = fallback
   print '(a,i0,a,i0,a,i0)', 'L', level, ', shared by ', sharers, ': tile ', tile
   call servet_profile_close(profile)

   allocate (a(n, n), b(n, n), plain(n, n), tiled(n, n))
   call random_number(a)
   call random_number(b)
   call multiply(tile, tiled, tiled_s)
   call multiply(n, plain, plain_s)
   if (any(abs(tiled - plain) > agreement * abs(plain))) call fail('WRONG')
   print '(i0,a,i0,a,f0.2,a)', n, ' x ', n, ': the same as without tiles, which takes ', plain_s / max(tiled_s, 1d-9), &
      ' times as long'
   deallocate (a, b, plain, tiled)

contains

   subroutine multiply(t, c, seconds)
      integer, intent(in) :: t
      real(8), intent(out) :: c(:, :), seconds
      integer :: i0, k0, j0, i, k, j
      integer(8) :: begun, ended, rate
      call system_clock(begun, rate)
      c = 0
      do j0 = 1, n, t
         do k0 = 1, n, t
            do i0 = 1, n, t
               do j = j0, min(j0 + t - 1, n)
                  do i = i0, min(i0 + t - 1, n)
                     do k = k0, min(k0 + t - 1, n)
                        c(i, j) = c(i, j) + a(i, k) * b(k, j)
                     end do
                  end do
               end do
            end do
         end do
      end do
      call system_clock(ended)
      seconds = real(ended - begun, 8) / real(rate, 8)
   end subroutine

   subroutine fail(why)
      use, intrinsic :: iso_fortran_env, only: error_unit
      character(len=*), intent(in) :: why
      write (error_unit, '(a,a)') 'tile_size_f: ', why
      stop 2, quiet=.true.
   end subroutine
end program
