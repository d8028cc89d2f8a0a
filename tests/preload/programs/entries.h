/* Every entry in which a process becomes a rank: of MPI, of Fortran's MPI and of OpenSHMEM. */
#pragma once

// clang-format off
#define ENTRIES(with) \
    with(MPI_Init) \
    with(MPI_Init_thread) \
    with(PMPI_Init) \
    with(PMPI_Init_thread) \
    with(mpi_init) \
    with(mpi_init_) \
    with(mpi_init__) \
    with(MPI_INIT) \
    with(mpi_init_thread) \
    with(mpi_init_thread_) \
    with(mpi_init_thread__) \
    with(MPI_INIT_THREAD) \
    with(MPI_Session_init) \
    with(PMPI_Session_init) \
    with(shmem_init) \
    with(shmem_init_thread) \
    with(start_pes)
// clang-format on
