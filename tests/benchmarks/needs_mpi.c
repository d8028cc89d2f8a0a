/* A library with the name of an MPI's, and a program that needs it: nothing runs it, it is only
 * looked at. */
int stands_for_mpi(void);

#ifdef LIBRARY
int stands_for_mpi(void)
{
    return 0;
}
#else
int main(void)
{
    return stands_for_mpi();
}
#endif
