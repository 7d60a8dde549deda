/* A program that knows nothing of the profiler. */

#include <stdio.h>

int begin_mpi(void);
int pass_around(void);
int end_mpi(void);

int main(void) {
    if (begin_mpi() != 0) {
        return 1;
    }
    printf("the sum is %d\n", pass_around());
    return end_mpi();
}
