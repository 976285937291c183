/* The operator families, one line a family. X(name) stands for a folder, src/operators/<name>, and for what is in it:
 *   clv__ops_<name>       infer.c: schemas, shapes, work (operators/infer.h)
 *   clv__kernels_<name>   run.c: what the operators compute (operators/run.h)
 *   clv__cases_<name>     cases.c: what conformance asks of devices (operators/cases.h)
 * Each table ends with an entry without a name. A new operator is a few lines in its family's folder; a new family is a new
 * folder and a line here. */
#ifndef CLEAVE_OPERATORS_FAMILIES_H
#define CLEAVE_OPERATORS_FAMILIES_H

/* Operators on tensors: all three tables. */
#define CLV__TENSOR_FAMILIES(X) \
  X(unary)                      \
  X(binary)                     \
  X(cast)                       \
  X(reduce)                     \
  X(softmax)                    \
  X(loss)                       \
  X(quantize)                   \
  X(matmul)                     \
  X(einsum)                     \
  X(convolution)                \
  X(pool)                       \
  X(normalize)                  \
  X(recurrent)                  \
  X(attention)                  \
  X(sparse)                     \
  X(resize)                     \
  X(region)                     \
  X(patches)                    \
  X(signal)                     \
  X(view)                       \
  X(layout)                     \
  X(join)                       \
  X(gather)                     \
  X(generate)                   \
  X(select)                     \
  X(linalg)

/* And If, Loop and Scan, whose nodes hold graphs: the first table alone. src/analysis/evaluate_body.c runs them, and
 * src/check/cases/control.c builds their cases. */
#define CLV__FAMILIES(X) CLV__TENSOR_FAMILIES(X) X(control)

#endif
