/* Matches elementwise functions of one tensor, and Resize, to oneDNN's. */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_RECOGNISE_H
#define CLEAVE_BACKENDS_CPU_PASSES_RECOGNISE_H

#include "variant.h"

/* Fills `post` for a node that is an elementwise function of its input 0 alone. Returns false if oneDNN has no such function. */
bool clv__cpu_unary_of(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_post *post);

/* Whether `node`, a Resize, is one that lower/resize.c supports. */
bool clv__cpu_is_resize(clv__cpu_variant *variant, clv__cpu_variant_node *node);

#endif
