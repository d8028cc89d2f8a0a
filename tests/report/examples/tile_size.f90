! Chooses a tile from the effective cache sizes, as tile_size.c.
!
!   tile_size_f [PROFILE]
program tile_size_f
   use, intrinsic :: iso_c_binding
   use, intrinsic :: iso_fortran_env, only: error_unit
   use servet
   implicit none
   integer, parameter :: level = 2, fallback = 64
   type(c_ptr) :: profile
   type(servet_error) :: error
   character(len=4096) :: path
   integer(c_int32_t) :: pus(1), sharers
   integer(c_size_t) :: known
   integer(c_int64_t) :: bytes
   integer :: tile, status

   if (command_argument_count() >= 1) then
      call get_command_argument(1, path)
      status = servet_profile_open(path=trim(path)//c_null_char, profile=profile, error=error)
   else
      status = servet_profile_open(profile=profile, error=error)
      if (status < 0) status = servet_topology_open(profile, error)
   end if
   if (status < 0) then
      write (error_unit, '(a,a)') 'tile_size_f: ', servet_error_line(error)
      stop 2, quiet=.true.
   end if
   known = servet_pus(profile, pus, 1_c_size_t)
   sharers = max(servet_cache_sharers(profile, level, pus(1)), 1)
   bytes = servet_cache_bytes(profile, level, pus(1))
   if (bytes == 0) status = servet_cache_interval(profile, level, pus(1), low_bytes=bytes)
   tile = int(sqrt(real(bytes, 8) / sharers / (3 * 8)))
   if (tile < 1) tile = fallback
   print '(a,i0,a,i0,a,i0)', 'L', level, ', shared by ', sharers, ': tile ', tile
   call servet_profile_close(profile)
end program
