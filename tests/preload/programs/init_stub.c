/* Stands for an MPI library where only its entry matters. */
int MPI_Init(int *count, char ***values);
int MPI_Init(int *count, char ***values)
{
    return count || values ? 1 : 0;
}
