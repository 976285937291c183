/* All of Cleave's public interface for applications. */
#ifndef CLEAVE_CLEAVE_H
#define CLEAVE_CLEAVE_H

#include "bench.h"
#include "builder.h"
#include "cache.h"
#include "check.h"
#include "compiled.h"
#include "context.h"
#include "devices.h"
#include "gnn.h"
#include "gnn_costs.h"
#include "graph.h"
#include "graph_contents.h"
#include "info.h"
#include "inspect.h"
#include "label.h"
#include "plan.h"
#include "plan_contents.h"
#include "profile.h"
#include "program.h"
#include "report.h"
#include "session.h"
#include "session_info.h"
#include "support.h"
#include "tensors.h"
#include "trace.h"
#include "types.h"
#include "verify.h"

#endif
