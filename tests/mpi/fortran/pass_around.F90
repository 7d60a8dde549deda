! A number goes once around all ranks, by Fortran code that begins and ends MPI by itself.

module pass_around_ranks
    use, intrinsic :: iso_c_binding, only: c_int
    use mpi
    implicit none
contains
    integer(c_int) function begin_mpi() bind(c)
        call MPI_Init(begin_mpi)
    end function

    integer(c_int) function end_mpi() bind(c)
        call MPI_Finalize(end_mpi)
    end function

    ! Gives the sum of all ranks.
    integer(c_int) function pass_around() bind(c)
        integer :: rank, ranks, total, error
        call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
        call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
        total = 0
        if (rank > 0) call MPI_Recv(total, 1, MPI_INTEGER, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        total = total + rank
        call MPI_Send(total, 1, MPI_INTEGER, mod(rank + 1, ranks), 0, MPI_COMM_WORLD, error)
        if (rank == 0) call MPI_Recv(total, 1, MPI_INTEGER, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        call MPI_Bcast(total, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
        pass_around = total
    end function
end module
