! What Servet knows of this machine, for Fortran programs that tune themselves: the functions of servet.h, whose text
! says what they give, in which unit, and what is not known. Compile it with the program:
!     gfortran servet.f90 program.f90 -lservet
! Unsigned numbers of C are integers of the same size here; what the profile never exceeds fits.
module servet
   use, intrinsic :: iso_c_binding
   implicit none
   private :: c_char, c_double, c_int, c_int32_t, c_int64_t, c_ptr, c_size_t, c_null_char, &
      c_null_ptr

   integer(c_int), parameter :: servet_declared = 0, servet_measured_here = 1, servet_inferred = 2

   type, bind(c) :: servet_error
      character(kind=c_char) :: text(512) = c_null_char
   end type

   type, bind(c) :: servet_quality
      integer(c_int) :: origin           ! servet_declared and so on
      integer(c_int32_t) :: repetitions  ! 0: not said
      real(c_double) :: spread           ! < 0: not known
   end type

   ! Texts are C's: c_f_pointer() gets at them.
   type, bind(c) :: servet_device
      integer(c_int) :: kind = 0
      type(c_ptr) :: name = c_null_ptr, bus_id = c_null_ptr, uuid = c_null_ptr
      integer(c_int64_t) :: number = -1, numa_node = -1
      integer(c_int32_t) :: card = 0
   end type

   type, bind(c) :: servet_transfer
      real(c_double) :: to_device_bytes_per_s, from_device_bytes_per_s, seconds
      real(c_double) :: spread           ! < 0: not known
   end type

   type, bind(c) :: servet_bsp
      integer(c_int32_t) :: processors
      real(c_double) :: r_flop_per_s, g_flops, g_packets_flops, l_flops, t0_flops
   end type

   ! Lists are c_loc() of integer(c_int32_t) arrays with the attribute target.
   type, bind(c) :: servet_map_request
      integer(c_int) :: priority = 0  ! 0: memory, 1: communication
      integer(c_int32_t) :: ranks = 1
      type(c_ptr) :: threads = c_null_ptr, allowed = c_null_ptr
      integer(c_size_t) :: allowed_count = 0
      type(c_ptr) :: taken = c_null_ptr
      integer(c_size_t) :: taken_count = 0
      integer(c_int) :: one_by_one = 0
   end type

   type, bind(c) :: servet_worth
      integer(c_int32_t) :: workers
      real(c_double) :: bytes_per_s, most_bytes_per_s
      integer(c_int32_t) :: measured_workers
   end type

   interface
      ! `path` ends with c_null_char; left out: this machine's profile.
      integer(c_int) function servet_profile_open(path, profile, error) bind(c)
         import
         character(kind=c_char), intent(in), optional :: path(*)
         type(c_ptr), intent(out) :: profile
         type(servet_error), intent(out), optional :: error
      end function
      integer(c_int) function servet_topology_open(profile, error) bind(c)
         import
         type(c_ptr), intent(out) :: profile
         type(servet_error), intent(out), optional :: error
      end function
      subroutine servet_profile_close(profile) bind(c)
         import
         type(c_ptr), value :: profile
      end subroutine

      ! The machine.
      integer(c_int) function servet_measured(profile) bind(c)
         import
         type(c_ptr), value :: profile
      end function
      integer(c_int32_t) function servet_node_count(profile) bind(c)
         import
         type(c_ptr), value :: profile
      end function
      integer(c_int32_t) function servet_pu_count(profile) bind(c)
         import
         type(c_ptr), value :: profile
      end function
      integer(c_size_t) function servet_pus(profile, pus, room) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), intent(out) :: pus(*)
         integer(c_size_t), value :: room
      end function

      ! Caches.
      integer(c_int32_t) function servet_cache_levels(profile) bind(c)
         import
         type(c_ptr), value :: profile
      end function
      integer(c_int64_t) function servet_cache_bytes(profile, level, pu) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu
      end function
      integer(c_int32_t) function servet_cache_line_bytes(profile, level, pu) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu
      end function
      integer(c_int64_t) function servet_cache_declared_bytes(profile, level, pu) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu
      end function
      integer(c_int) function servet_cache_interval(profile, level, pu, low_bytes, high_bytes) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu
         integer(c_int64_t), intent(inout), optional :: low_bytes, high_bytes
      end function
      integer(c_int32_t) function servet_cache_ways(profile, level, pu) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu
      end function
      integer(c_int64_t) function servet_tlb_bytes(profile, level, page_bytes, pu) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu
         integer(c_int64_t), value :: page_bytes
      end function
      integer(c_int) function servet_cache_shared(profile, level, pu_a, pu_b) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu_a, pu_b
      end function
      integer(c_int32_t) function servet_cache_sharers(profile, level, pu) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu
      end function

      ! Memory.
      real(c_double) function servet_memory_bandwidth(profile, pu, workers) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu, workers
      end function
      real(c_double) function servet_numa_bandwidth(profile, pu, numa_node) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu, numa_node
      end function
      real(c_double) function servet_numa_seconds(profile, pu, numa_node) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu, numa_node
      end function
      ! `kernel`: 0 non-temporal copy, 1 copy, 2 read, 3 triad; `workers` left out: one PU alone.
      real(c_double) function servet_kernel_bandwidth(profile, pu, kernel, workers) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu
         integer(c_int), value :: kernel
         integer(c_int32_t), intent(inout), optional :: workers
      end function
      integer(c_int) function servet_kernel_quality(profile, pu, kernel, out) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu
         integer(c_int), value :: kernel
         type(servet_quality), intent(inout) :: out
      end function
      integer(c_int64_t) function servet_numa_memory_bytes(profile, pu, numa_node) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu, numa_node
      end function
      real(c_double) function servet_pair_bandwidth(profile, pu_a, pu_b) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
      end function
      integer(c_int64_t) function servet_numa_node(profile, pu) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu
      end function
      integer(c_int) function servet_overhead_level(profile, pu_a, pu_b) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
      end function
      integer(c_int32_t) function servet_overhead_levels(profile) bind(c)
         import
         type(c_ptr), value :: profile
      end function
      real(c_double) function servet_level_bandwidth(profile, level, pu, workers) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu, workers
      end function
      integer(c_size_t) function servet_numa_nodes(profile, pu, nodes, room) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu
         integer(c_int32_t), intent(out) :: nodes(*)
         integer(c_size_t), value :: room
      end function
      ! `kind`: 0 GPU, 1 network card, 2 disk.
      integer(c_size_t) function servet_devices_near(profile, pu, kind, out, room) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu
         integer(c_int), value :: kind
         type(servet_device), intent(inout) :: out(*)
         integer(c_size_t), value :: room
      end function
      ! `device`: a name that ends with c_null_char.
      integer(c_int) function servet_device_transfer(profile, pu, device, numa_node, out) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu, numa_node
         character(kind=c_char), intent(in) :: device(*)
         type(servet_transfer), intent(inout) :: out
      end function
      real(c_double) function servet_overhead_bandwidth(profile, pu_a, pu_b) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
      end function

      ! Messages.
      real(c_double) function servet_message_seconds(profile, pu_a, pu_b, bytes) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
         integer(c_int64_t), value :: bytes
      end function
      real(c_double) function servet_pair_seconds(profile, pu_a, pu_b, bytes) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
         integer(c_int64_t), intent(inout), optional :: bytes
      end function
      real(c_double) function servet_line_seconds(profile, pu_a, pu_b) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
      end function
      real(c_double) function servet_messages_slower(profile, pu_a, pu_b, messages) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b, messages
      end function
      integer(c_int) function servet_message_layer(profile, pu_a, pu_b) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
      end function

      ! How sure a figure is.
      integer(c_int) function servet_cache_quality(profile, level, pu, out) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu
         type(servet_quality), intent(inout) :: out
      end function
      integer(c_int) function servet_sharing_quality(profile, level, pu, out) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: level, pu
         type(servet_quality), intent(inout) :: out
      end function
      integer(c_int) function servet_memory_quality(profile, pu, workers, out) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu, workers
         type(servet_quality), intent(inout) :: out
      end function
      integer(c_int) function servet_numa_quality(profile, pu, numa_node, out) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu, numa_node
         type(servet_quality), intent(inout) :: out
      end function
      integer(c_int) function servet_message_quality(profile, pu_a, pu_b, out) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
         type(servet_quality), intent(inout) :: out
      end function
      integer(c_int) function servet_line_quality(profile, pu_a, pu_b, out) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
         type(servet_quality), intent(inout) :: out
      end function

      ! What held while measuring, a C string (c_f_pointer); `name` ends with c_null_char. c_null_ptr: it did not.
      type(c_ptr) function servet_condition(profile, name) bind(c)
         import
         type(c_ptr), value :: profile
         character(kind=c_char), intent(in) :: name(*)
      end function

      ! Placing.
      integer(c_int) function servet_map(profile, request, pus, error) bind(c)
         import
         type(c_ptr), value :: profile
         type(servet_map_request), intent(in) :: request
         integer(c_int32_t), intent(inout) :: pus(*)
         type(servet_error), intent(out), optional :: error
      end function
      integer(c_int) function servet_workers_worth(profile, pu, scope, pus, out, error) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu
         integer(c_int), value :: scope
         integer(c_int32_t), intent(inout), optional :: pus(*)
         type(servet_worth), intent(inout) :: out
         type(servet_error), intent(out), optional :: error
      end function
      integer(c_int32_t) function servet_quota_workers() bind(c)
         import
      end function
      integer(c_int32_t) function servet_messages_worth(profile, pu_a, pu_b) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: pu_a, pu_b
      end function

      ! Order of ranks; `traffic` left out: ranks that follow each other talk.
      integer(c_int) function servet_rank_order(profile, pus, ranks, traffic, order, error) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), intent(in) :: pus(*)
         integer(c_int32_t), value :: ranks
         real(c_double), intent(in), optional :: traffic(*)
         integer(c_int32_t), intent(inout) :: order(*)
         type(servet_error), intent(out), optional :: error
      end function

      ! Supersteps; `backend` ends with c_null_char; left out: the first that covers the number.
      integer(c_int) function servet_bsp_parameters(profile, backend, processors, out) bind(c)
         import
         type(c_ptr), value :: profile
         character(kind=c_char), intent(in), optional :: backend(*)
         integer(c_int32_t), value :: processors
         type(servet_bsp), intent(inout) :: out
      end function
      real(c_double) function servet_bsp_cost(profile, processors, work_flops, h_words) bind(c)
         import
         type(c_ptr), value :: profile
         integer(c_int32_t), value :: processors
         real(c_double), value :: work_flops, h_words
      end function
   end interface

contains

   ! The line that an error says, without what stands behind its end.
   function servet_error_line(error) result(line)
      type(servet_error), intent(in) :: error
      character(len=:), allocatable :: line
      integer :: i
      line = ''
      do i = 1, size(error%text)
         if (error%text(i) == c_null_char) exit
         line = line // error%text(i)
      end do
   end function
end module servet
