/* The operator families, one per line. X(name) declares the family in folder src/operators/<name>, which defines three tables:
 *   clv__ops_<name>       infer.c: schemas, shapes, work (operators/infer.h)
 *   clv__kernels_<name>   run.c: the computation of each operator (operators/run.h)
 *   clv__cases_<name>     cases.c: the conformance cases for devices (operators/cases.h)
 * Each table ends with an entry without a name. To add an operator, add a few lines in its family's folder. To add a family,
 * add a folder and a line here. */
#ifndef CLEAVE_OPERATORS_FAMILIES_H
#define CLEAVE_OPERATORS_FAMILIES_H

/* The families of operators on tensors, which have all three tables. */
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

/* All families. `control` is If, Loop and Scan, whose attributes contain graphs. It has only the first table.
 * src/analysis/evaluate_body.c runs them, and src/check/cases/control.c builds their cases. */
#define CLV__FAMILIES(X) CLV__TENSOR_FAMILIES(X) X(control)

#endif
