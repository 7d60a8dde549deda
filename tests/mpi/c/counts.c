/* What takes numbers of items: with counts of 32 bits, or (LARGE) with the large ones of version 4 of MPI. On
   three ranks. */

#include <mpi.h>
#include <stddef.h>

#ifdef LARGE
#define CALL(name) name##_c
typedef MPI_Count count;
typedef MPI_Aint place;
#else
#define CALL(name) name
typedef int count;
typedef int place;
#endif

#define RANKS 3

int main(void) {
    int rank, sent[8] = {0}, received[8 * RANKS] = {0};
    const MPI_Comm all = MPI_COMM_WORLD;
    MPI_Request requests[2];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(all, &rank);
    const int next = (rank + 1) % RANKS, before = (rank + RANKS - 1) % RANKS;

    CALL(MPI_Irecv)(received, 8, MPI_INT, before, 0, all, &requests[0]);
    CALL(MPI_Isend)(sent, 5, MPI_INT, next, 0, all, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CALL(MPI_Sendrecv)(sent, 3, MPI_INT, next, 0, received, 8, MPI_INT, before, 0, all, MPI_STATUS_IGNORE);
    if (rank == 0) {
        CALL(MPI_Send)(sent, 1, MPI_INT, 1, 0, all);
    } else if (rank == 1) {
        CALL(MPI_Recv)(received, 1, MPI_INT, 0, 0, all, MPI_STATUS_IGNORE);
    }

    CALL(MPI_Bcast)(sent, 2, MPI_INT, 1, all);
    CALL(MPI_Allreduce)(MPI_IN_PLACE, sent, 4, MPI_INT, MPI_SUM, all);
    CALL(MPI_Ibcast)(sent, 6, MPI_INT, 0, all, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);

    const count counts[RANKS] = {1, 2, 3};
    const place places[RANKS] = {0, 8, 16};
    CALL(MPI_Gatherv)(sent, counts[rank], MPI_INT, received, counts, places, MPI_INT, 2, all);
    CALL(MPI_Allgatherv)(MPI_IN_PLACE, 0, MPI_INT, received, counts, places, MPI_INT, all);
    const count mine[RANKS] = {counts[rank], counts[rank], counts[rank]};
    const place sent_from[RANKS] = {0, 0, 0};
    const MPI_Datatype types[RANKS] = {MPI_INT, MPI_INT, MPI_INT};
    CALL(MPI_Alltoallw)(sent, mine, sent_from, types, received, counts, places, types, all);
    CALL(MPI_Reduce_scatter_block)(received, sent, 1, MPI_INT, MPI_SUM, all);

    /* A type that is longer than 32 bits can say; with itself alone a rank moves nothing. */
    MPI_Datatype gib, three_gib;
    MPI_Type_contiguous(1 << 30, MPI_BYTE, &gib);
    MPI_Type_contiguous(3, gib, &three_gib);
    MPI_Type_commit(&three_gib);
    CALL(MPI_Bcast)(sent, 1, three_gib, 0, MPI_COMM_SELF);

    MPI_Win window;
    CALL(MPI_Win_create)(sent, sizeof sent, sizeof(int), MPI_INFO_NULL, all, &window);
    MPI_Win_fence(0, window);
    CALL(MPI_Put)(received, 2, MPI_INT, next, 0, 2, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    return MPI_Finalize();
}
