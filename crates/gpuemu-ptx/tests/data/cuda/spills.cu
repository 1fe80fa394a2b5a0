// More numbers than there are registers: some are spilled. And an array that has no registers: it is on the stack.
extern "C" __global__ void __launch_bounds__(1024, 2) spills(double *x, int n) {
    double kept[40];
    for (int i = 0; i < 40; i++) {
        kept[i] = x[i * n];
    }
    for (int round = 0; round < n; round++) {
        for (int i = 0; i < 40; i++) {
            kept[i] = kept[i] * kept[(i + 7) % 40] + kept[(i + 3) % 40];
        }
    }
    for (int i = 0; i < 40; i++) {
        x[i * n] = kept[i];
    }
}

extern "C" __global__ void indexed(float *x, const int *at, int n) {
    float kept[64];
    for (int i = 0; i < 64; i++) {
        kept[i] = x[i];
    }
    for (int round = 0; round < n; round++) {
        kept[at[round] & 63] += 1.0f;
    }
    for (int i = 0; i < 64; i++) {
        x[i] = kept[i];
    }
}
