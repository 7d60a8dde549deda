/* A number goes once around all ranks, by C code that begins and ends MPI by itself. */

#include <mpi.h>
#include <stddef.h>

int begin_mpi(void) { return MPI_Init(NULL, NULL); }

int end_mpi(void) { return MPI_Finalize(); }

/* Gives the sum of all ranks. */
int pass_around(void) {
    int rank, ranks, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank > 0) {
        MPI_Recv(&sum, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    sum += rank;
    MPI_Send(&sum, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(&sum, 1, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return sum;
}
