/* The strategy `propagate` and its variant on the edges of the graph. The passes are in propagate/. */
#include "place/list_cut.h"

static const clv__cause causes[] = {
    {"1.dst", "its result lives there already"},
    {"1.inp", "it reads inputs of the graph"},
    {"1.wgt#", "a weight that it reads lives there"},
    {"1.off", "its weight lives in host memory, and the device wants the node all the same"},
    {"2a.down", "follows the node before it, to a device"},
    {"2b.up", "joins the node after it, on a device"},
    {"2c.down", "follows the node before it"},
    {"2d.up", "joins the node after it"},
    {"3.best", "most of what it reads is there"},
    {"3.upg", "raised to a device of higher priority with the same memory"},
    {"4.vsrc", "moves no data: it stays where its source is"},
    {"4.cur", "nothing placed it: it stays with the part it is in"},
    {"5.cur", "a view at the begin of a part: it joins it"},
    {NULL, NULL},
};

const clv__strategy clv__strategy_propagate = {
    .name = "propagate",
    .summary = "from where weights and inputs live, spread down and up the list, then the best supported",
    .place = clv__place_propagate,
    .split = CLV__SPLIT_LINEAR,
    .copy_limit = CLV__PROPAGATE_COPIES,
    .causes = causes,
};

const clv__strategy clv__strategy_propagate_graph = {
    .name = "propagate-graph",
    .summary = "the same, spread along the edges of the graph",
    .place = clv__place_propagate_graph,
    .split = CLV__SPLIT_LINEAR,
    .copy_limit = CLV__PROPAGATE_COPIES,
    .causes = causes,
};
