#include <cstdio>
#include <cassert>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
namespace cg = cooperative_groups; using namespace nvcuda;
struct Base { __device__ virtual float f(float x) { return x; } };
struct A : Base { __device__ float f(float x) override { return x * 2; } };
struct B : Base { __device__ float f(float x) override { return sinf(x); } };
__global__ void virtuals(float *o, int k) { A a; B b; Base *p = k ? (Base*)&a : (Base*)&b; o[threadIdx.x] = p->f(o[threadIdx.x]); assert(o[0] < 5); printf("%f %d\n", o[0], k); }
__global__ void wm(half *a, half *b, float *c) { wmma::fragment<wmma::matrix_a,16,16,16,half,wmma::row_major> fa; wmma::fragment<wmma::matrix_b,16,16,16,half,wmma::col_major> fb; wmma::fragment<wmma::accumulator,16,16,16,float> fc; wmma::fill_fragment(fc, 0.f); wmma::load_matrix_sync(fa, a, 16); wmma::load_matrix_sync(fb, b, 16); wmma::mma_sync(fc, fa, fb, fc); wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major); }
__global__ void coop(int *o) { auto g = cg::this_thread_block(); auto t = cg::tiled_partition<32>(g); int v = cg::reduce(t, o[threadIdx.x], cg::plus<int>()); g.sync(); if (t.thread_rank()==0) atomicAdd(o, v); }
__global__ void bar(int *o) { __shared__ cuda::barrier<cuda::thread_scope_block> b; if (threadIdx.x == 0) init(&b, blockDim.x); __syncthreads(); __shared__ int s[128]; cuda::memcpy_async(s + threadIdx.x, o + threadIdx.x, cuda::aligned_size_t<4>(4), b); b.arrive_and_wait(); o[threadIdx.x] = s[127 - threadIdx.x]; }
__global__ void tex(cudaTextureObject_t t, float4 *o, cudaSurfaceObject_t s) { o[threadIdx.x] = tex2D<float4>(t, threadIdx.x, 0.5f); surf2Dwrite(o[0].x, s, 4 * threadIdx.x, 1); }
__constant__ double table[8] = {1,2,3,4,5,6,7,8}; __device__ __managed__ int man; __device__ const char *names[2] = {"ab", "cd"};
__global__ void misc(double *d, long long *l, unsigned char *c, __nv_bfloat16 *h, __nv_fp8_e4m3 *q) { int i = threadIdx.x; d[i] = table[i & 7] * pow(d[i], 1.5) + lgamma(d[i]); l[i] = __mulhi((int)l[i], 7) + __popcll(l[i]) + clock64(); c[i] = names[i & 1][0]; h[i] = __hadd(h[i], h[i+1]); q[i] = __nv_fp8_e4m3((float)d[i]); man = i; unsigned a; asm volatile("{ .reg .pred p; LAB: setp.eq.u32 p, %0, 0; @p bra DONE; bra LAB; DONE: }" :: "r"(i)); asm volatile("{ .reg .pred p; LAB: setp.eq.u32 p, %0, 0; @p bra DONE; bra LAB; DONE: }" :: "r"(i+1)); asm("mov.u32 %0, %%laneid;" : "=r"(a)); l[a] = __dp4a((int)a, i, 4); switch (i) { case 0: l[1]=2; break; case 1: l[2] = 7; break; case 2: l[5]=9; break; case 3: l[3] ^= 5; break; case 4: l[6] += 7; break; case 5: l[0]=1; break; case 6: l[9]*=3; break; case 7: __trap(); } __nanosleep(10); }
__global__ void dyn(float *o) { extern __shared__ float4 sm[]; sm[threadIdx.x] = ((float4*)o)[threadIdx.x]; __syncthreads(); __threadfence(); o[threadIdx.x] = sm[31 - threadIdx.x].x + __shfl_xor_sync(~0u, o[1], 3); if (__any_sync(~0u, o[0] > 1)) o[1] = 0; }
__global__ __launch_bounds__(256, 2) void __cluster_dims__(2,1,1) clus(int *o) { auto c = cg::this_cluster(); __shared__ int s; s = threadIdx.x; c.sync(); int *r = c.map_shared_rank(&s, 1); o[threadIdx.x] = *r; c.sync(); }
