/* The strategy `propagate` and its variant on the edges of the graph. The passes are in propagate/. */
#include "place/list_cut.h"

static const clv__cause causes[] = {
    {"1.dst", "its result is assigned to that device's memory"},
    {"1.inp", "it reads graph inputs, which live there"},
    {"1.wgt#", "a weight that it reads lives there"},
    {"1.off", "its weight lives in host memory, but the device prefers to run the node"},
    {"2a.down", "follows the previous node, to a device other than the host"},
    {"2b.up", "joins the next node, on a device other than the host"},
    {"2c.down", "follows the previous node"},
    {"2d.up", "joins the next node"},
    {"3.best", "most of its inputs are there"},
    {"3.upg", "moved to a device of higher priority with the same memory"},
    {"4.vsrc", "moves no data, so it stays where its source is"},
    {"4.cur", "no rule placed it, so it stays in the surrounding partition"},
    {"5.cur", "a view at the start of a partition joins that partition"},
    {NULL, NULL},
};

const clv__strategy clv__strategy_propagate = {
    .name = "propagate",
    .summary =
        "start at the devices where weights and inputs live, and spread along the node list, down and up; then the best "
        "supported "
        "device",
    .place = clv__place_propagate,
    .split = CLV__SPLIT_LINEAR,
    .copy_limit = CLV__PROPAGATE_COPIES,
    .causes = causes,
};

const clv__strategy clv__strategy_propagate_graph = {
    .name = "propagate-graph",
    .summary = "like propagate, but spread along the edges of the graph",
    .place = clv__place_propagate_graph,
    .split = CLV__SPLIT_LINEAR,
    .copy_limit = CLV__PROPAGATE_COPIES,
    .causes = causes,
};
