/* The section `errors` of the conformance kit (check.h): the backend rejects invalid calls with a valid status and a text that
 * is not empty. The device keeps working afterwards. */
#include <stdio.h>
#include <string.h>

#include "check/scene.h"
#include "check/sections.h"

/* Checks a call that must fail. */
static void check_refusal(clv__check *check, const char *what, clv_status status, const clv_error *error) {
  if (!clv__check_that(check, status != CLV_OK, what, "it returned 'ok'; expected an error")) return;
  clv__check_that(check, status > CLV_OK && status <= CLV_TIMED_OUT, what, "invalid status %d", (int)status);
  clv__check_that(check, error->message[0] != '\0', what, "it returned '%s' without an error text", clv_status_name(status));
}

/* ---- Unknown nodes ---- */

static void check_foreign_node(clv__check *check) {
  static const int64_t dims[] = {4, 8};
  clv_error error = {0};
  clv__sketch sketch;
  clv_graph *graph;
  clv__check_program program = {0};
  clv_verdict verdict = {0};
  clv__sketch_begin(&sketch, check, CLV_F32, 1, &error);
  clv__sketch_input(&sketch, "a", 2, dims);
  clv__sketch_foreign(&sketch, "no.such.domain", "NoSuchOperator", "a", "y");
  clv_status status = clv__sketch_end(&sketch, "y", &graph);
  if (status != CLV_OK) {
    clv__check_failed_call(check, "an unknown operator", "building the graph", status, &error);
    return;
  }
  status = clv__check_program_view(check, graph, NULL, NULL, 0, &program, &error);
  if (status == CLV_OK) {
    clv__check_at(check, "supports of an unknown operator");
    check->backend->supports(check->handle, program.view, 0, &verdict);
    clv__check_that(check, !verdict.supported, "supports of an unknown operator",
                    "the verdict for no.such.domain:NoSuchOperator is 'supported'");
    clv__check_at(check, "compile of an unknown operator");
    clv_executable *made = NULL;
    const clv_compile_options options = {.struct_size = sizeof options};
    clv__error_clear(&error);
    status = check->backend->compile(check->handle, program.view, &options, &made, &error);
    check_refusal(check, "compile of an unknown operator", status, &error);
    clv__check_that(check, status == CLV_OK || made == NULL, "compile of an unknown operator",
                    "it failed, but returned an executable");
    if (made != NULL) check->backend->executable_destroy(check->handle, made);
    made = NULL;
    clv__check_at(check, "compile of an unknown operator, with error = NULL");
    status = check->backend->compile(check->handle, program.view, &options, &made, NULL);
    clv__check_that(check, status != CLV_OK, "compile of an unknown operator, with error = NULL",
                    "it returned 'ok'; expected an error");
    if (status == CLV_OK && made != NULL) check->backend->executable_destroy(check->handle, made);
  } else {
    clv__check_failed_call(check, "an unknown operator", "creating the graph view", status, &error);
  }
  clv__check_program_finish(&program);
  clv__graph_destroy(graph);
}

/* ---- Wrong numbers of operands ---- */

/* Checks that instance_create() rejects too few inputs or weights. If `late`, it may accept too few inputs, because execute()
 * rejects them and some instances do not depend on the shapes of their inputs. */
static void check_instance_counts(clv__check *check, clv__check_scene *scene, clv__check_job *job, bool late) {
  const clv__check_program *program = &scene->program;
  clv_error error = {0};
  clv_tensor *types;
  uint32_t inputs = job->input_count, weights = program->info.weight_count;
  if (clv__check_job_types(job, scene->truth.values, &scene->arena, &types, &error) != CLV_OK) return;
  for (uint32_t i = 0; i < 3; ++i) {
    const char *const names[] = {"instance_create with no inputs", "instance_create with one input too few",
                                 "instance_create with no weights"};
    clv_instance *made = NULL;
    if ((i == 1 && inputs < 2) || (i == 2 && weights == 0)) continue;
    clv__check_at(check, "%s", names[i]);
    clv__error_clear(&error);
    clv_status status = check->backend->instance_create(check->handle, program->executable, types,
                                                        i == 0   ? 0
                                                        : i == 1 ? inputs - 1
                                                                 : inputs,
                                                        program->weights, i == 2 ? 0 : weights, &made, &error);
    if (status != CLV_OK || i == 2 || !late) check_refusal(check, names[i], status, &error);
    if (status == CLV_OK && made != NULL) check->backend->instance_destroy(check->handle, made);
  }
}

/* Checks that execute() rejects wrong numbers of operands. Returns whether it rejected too few inputs each time. */
static bool check_execute_counts(clv__check *check, clv__check_scene *scene, clv__check_job *job) {
  bool refused = true;
  clv_error error = {0};
  char text[1024];
  const struct {
    const char *what;
    uint32_t inputs, outputs;
  } wrong[] = {{"execute with no inputs", 0, job->output_count},
               {"execute with one input too few", job->input_count - 1, job->output_count},
               {"execute with no outputs", job->input_count, 0}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    clv_status status = clv__check_job_load(job, scene->truth.values, CLV__CHECK_POISON, &error);
    clv__check_at(check, "%s", wrong[i].what);
    job->args.input_count = wrong[i].inputs;
    job->args.output_count = wrong[i].outputs;
    if (status == CLV_OK) {
      clv__error_clear(&error);
      status = check->backend->execute(check->handle, job->instance, job->stream, &job->args, &error);
    }
    if (status == CLV_OK) status = check->backend->stream_synchronize(check->handle, job->stream, &error);
    check_refusal(check, wrong[i].what, status, &error);
    refused = refused && (status != CLV_OK || wrong[i].inputs == job->input_count);
  }
  /* The stream may have failed permanently, so open a new job. */
  clv__check_job_finish(job);
  if (!clv__scene_start(scene, job)) return refused;
  clv__check_that(check, clv__check_job_run(job, scene->truth.values, text, sizeof text), "a valid execution after invalid ones",
                  "%s", text);
  return refused;
}

void clv__check_errors(clv__check *check) {
  clv__check_scene scene;
  clv__check_job job = {0};
  check_foreign_node(check);
  if (!clv__scene_plain(check, check->seed + 3, &scene)) return;
  if (clv__scene_start(&scene, &job)) {
    if (job.input_count > 0) {
      bool late = check_execute_counts(check, &scene, &job);
      if (job.instance != NULL) check_instance_counts(check, &scene, &job, late);
    } else {
      clv__check_skip(check, "wrong numbers of operands", "the random graph has no inputs");
    }
    clv__check_job_finish(&job);
  }
  clv__scene_finish(&scene);
}
