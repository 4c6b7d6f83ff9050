/* problems.h - what there is to compute; one line each in problems.c. */
#ifndef DL_KERNELS_PROBLEMS_PROBLEMS_H
#define DL_KERNELS_PROBLEMS_PROBLEMS_H

#include "kernels/kernel.h"

#define DL_TENSORS(list) .tensors = list, .n_tensors = sizeof(list) / sizeof *(list)

extern const struct dl_problem dl_problem_gemm;
extern const struct dl_problem dl_problem_gemm_input_gradient;
extern const struct dl_problem dl_problem_gemm_weight_gradient;
extern const struct dl_problem dl_problem_gemm_transposed;
extern const struct dl_problem dl_problem_gemm_gelu;
extern const struct dl_problem dl_problem_gemm_gelu_input_gradient;
extern const struct dl_problem dl_problem_grouped_gemm;
extern const struct dl_problem dl_problem_grouped_gemm_input_gradient;
extern const struct dl_problem dl_problem_grouped_gemm_weight_gradient;
extern const struct dl_problem dl_problem_attention;
extern const struct dl_problem dl_problem_attention_backward;
extern const struct dl_problem dl_problem_conv;
extern const struct dl_problem dl_problem_conv_input_gradient;
extern const struct dl_problem dl_problem_conv_weight_gradient;
extern const struct dl_problem dl_problem_layernorm;
extern const struct dl_problem dl_problem_layernorm_input_gradient;
extern const struct dl_problem dl_problem_layernorm_weight_gradient;
extern const struct dl_problem dl_problem_rmsnorm;
extern const struct dl_problem dl_problem_rmsnorm_input_gradient;
extern const struct dl_problem dl_problem_rmsnorm_weight_gradient;
extern const struct dl_problem dl_problem_batchnorm;
extern const struct dl_problem dl_problem_batchnorm_backward;
extern const struct dl_problem dl_problem_softmax;
extern const struct dl_problem dl_problem_softmax_input_gradient;
extern const struct dl_problem dl_problem_cross_entropy;
extern const struct dl_problem dl_problem_cross_entropy_input_gradient;
extern const struct dl_problem dl_problem_embedding;
extern const struct dl_problem dl_problem_embedding_weight_gradient;
extern const struct dl_problem dl_problem_gelu;
extern const struct dl_problem dl_problem_gelu_input_gradient;
extern const struct dl_problem dl_problem_relu;
extern const struct dl_problem dl_problem_relu_input_gradient;
extern const struct dl_problem dl_problem_swiglu;
extern const struct dl_problem dl_problem_swiglu_input_gradient;
extern const struct dl_problem dl_problem_dropout;
extern const struct dl_problem dl_problem_dropout_input_gradient;
extern const struct dl_problem dl_problem_residual;
extern const struct dl_problem dl_problem_residual_input_gradient;
extern const struct dl_problem dl_problem_bias_weight_gradient;
extern const struct dl_problem dl_problem_copy;
extern const struct dl_problem dl_problem_copy_to_device;
extern const struct dl_problem dl_problem_copy_to_host;
extern const struct dl_problem dl_problem_pool;
extern const struct dl_problem dl_problem_pool_input_gradient;
extern const struct dl_problem dl_problem_global_pool;
extern const struct dl_problem dl_problem_global_pool_input_gradient;
extern const struct dl_problem dl_problem_sgd;
extern const struct dl_problem dl_problem_momentum;
extern const struct dl_problem dl_problem_adam;
extern const struct dl_problem dl_problem_lamb;
extern const struct dl_problem dl_problem_gradient_norm;
extern const struct dl_problem dl_problem_reduce;
extern const struct dl_problem dl_problem_quantize;
extern const struct dl_problem dl_problem_dequantize;
extern const struct dl_problem dl_problem_one_bit;
extern const struct dl_problem dl_problem_one_bit_decode;
extern const struct dl_problem dl_problem_topk;

/* What is done with input x, weight w and output y of a layer, which are indices: the product of two of them is added
 * to the gradient or the value of the third, which is the last of the tensors. */
typedef void dl_visitor(double *const *t, int64_t x, int64_t w, int64_t y);
dl_visitor dl_add_forward, dl_add_input, dl_add_weight;
void dl_clear(double *x, int64_t n);

/* GELU with tanh, and its slope. */
double dl_gelu(double x);
double dl_gelu_slope(double x);

#endif
