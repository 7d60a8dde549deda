/* A program that uses MPI through a library. */

void begin_barriers(void);
void barrier(void);
void end_barriers(void);

int main(void) {
    begin_barriers();
    barrier();
    barrier();
    end_barriers();
    return 0;
}
