// The sum of every row by four blocks: the last of them to come adds up the parts of all.

#define PARTS 4
// More than a case has: memory for the parts is of a fixed size.
#define MOST_ROWS (1 << 16)

__device__ float parts[MOST_ROWS][PARTS];
__device__ unsigned tickets[MOST_ROWS];

__device__ float part_of(const float *row, int columns) {
    float sum = 0.0f;
    for (int column = blockIdx.x; column < columns; column += PARTS) sum += row[column];
    return sum;
}

extern "C" __global__ void right(float *out, const float *input, int rows, int columns) {
    const int row = blockIdx.y;
    if (row >= rows) return;
    parts[row][blockIdx.x] = part_of(input + (long long)row * columns, columns);
    // The part is there for all before the ticket is.
    __threadfence();
    if (atomicAdd(&tickets[row], 1u) != PARTS - 1) return;
    __threadfence();
    float sum = 0.0f;
    for (int part = 0; part < PARTS; part += 1) sum += parts[row][part];
    out[row] = sum;
}

// WRONG: nothing orders a part and its ticket, so that the last block may read parts that are yet to come.
extern "C" __global__ void wrong(float *out, const float *input, int rows, int columns) {
    const int row = blockIdx.y;
    if (row >= rows) return;
    parts[row][blockIdx.x] = part_of(input + (long long)row * columns, columns);
    if (atomicAdd(&tickets[row], 1u) != PARTS - 1) return;
    float sum = 0.0f;
    for (int part = 0; part < PARTS; part += 1) sum += parts[row][part];
    out[row] = sum;
}
