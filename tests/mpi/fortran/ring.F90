! A number goes once around all ranks, by a program that knows nothing of the profiler, in one of the bindings:
! that of the file `mpif.h`, of the module `mpi` (MODULE), or of `mpi_f08` (F08).

program ring
#if defined(F08)
    use mpi_f08
    implicit none
    type(MPI_Request) :: request
    type(MPI_Status) :: status
#elif defined(MODULE)
    use mpi
    implicit none
    integer :: request, status(MPI_STATUS_SIZE)
#else
    implicit none
    include 'mpif.h'
    integer :: request, status(MPI_STATUS_SIZE)
#endif
    integer :: rank, ranks, before, total, largest, error

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    before = 0
    if (rank > 0) then
        call MPI_Recv(before, 1, MPI_INTEGER, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    end if
    total = before + rank
    call MPI_Isend(total, 1, MPI_INTEGER, mod(rank + 1, ranks), 0, MPI_COMM_WORLD, request, error)
    if (rank == 0) then
        call MPI_Recv(before, 1, MPI_INTEGER, ranks - 1, 0, MPI_COMM_WORLD, status, error)
    end if
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    largest = total
    call MPI_Allreduce(MPI_IN_PLACE, largest, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
    if (rank == 0) print '(a, i0)', 'the sum is ', largest
    call MPI_Finalize(error)
end program ring
