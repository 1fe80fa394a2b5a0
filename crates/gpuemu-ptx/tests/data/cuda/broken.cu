// Does not compile.
extern "C" __global__ void broken(float *x) { x[0] = no_such_name; }
