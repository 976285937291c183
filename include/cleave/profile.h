/* Profiles: measured costs of devices, for planning (clv_plan_options.profile). docs/profile-file.md describes their file.
 *
 * Unstable: may change until 1.0.
 *
 *   clv_profile_create(context, &profile, &error)
 *   clv_profile_measure(profile, devices, &(clv_profile_graph){graph, 0, NULL}, 1, NULL, &error)
 *   clv_profile_update(profile, "costs.json", &error)
 *   clv_profile_destroy(profile)
 *
 * A profile belongs to one thread at a time. Destroy it before its context. */
#ifndef CLEAVE_PROFILE_H
#define CLEAVE_PROFILE_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_profile clv_profile;

/* Creates an empty profile. */
CLV_API CLV_MUST_USE clv_status clv_profile_create(clv_context *context, clv_profile **profile, clv_error *error);
/* Reads a profile file. Errors: CLV_NOT_FOUND; CLV_IO_ERROR; CLV_INVALID_MODEL, with the place and the value, if the file is not
 * a valid profile. */
CLV_API CLV_MUST_USE clv_status clv_profile_read(clv_context *context, const char *path, clv_profile **profile, clv_error *error);
/* Accepts NULL. */
CLV_API void clv_profile_destroy(clv_profile *profile);

/* ---- Measuring ---- */

/* A graph to measure, and sizes for its symbols and inputs, as in clv_plan_options. Nodes whose sizes are not all known are not
 * measured. */
typedef struct clv_profile_graph {
  const clv_graph *graph;
  uint32_t size_count;
  const clv_size *sizes;
} clv_profile_graph;

typedef enum clv_profile_parts {
  CLV_PROFILE_ALL = 0,     /* both of the following */
  CLV_PROFILE_DEVICES = 1, /* of each device: the time to launch a partition, to copy data, and its peak rates */
  CLV_PROFILE_NODES =
      2 /* every distinct node of the graphs, and blocks of nodes, which show what nodes save by running together */
} clv_profile_parts;

typedef struct clv_profile_options {
  uint32_t struct_size;
  clv_profile_parts parts;
  uint32_t runs;         /* of each item, of which the median counts; slow items get fewer; 0: 15 */
  bool continues;        /* does not measure again what the profile already has; otherwise replaces it */
  double budget_seconds; /* limit of the whole call, which the devices share; 0: none */
  /* Called several times per second on the caller's thread. Return false to stop after the current item: the call then returns
   * CLV_CANCELLED, and the profile keeps what was measured. May be NULL. */
  bool (*go_on)(void *user_data);
  /* Called like go_on() with the current item: the path of the model ("" for CLV_PROFILE_DEVICES), the device, what is measured
   * ("nodes"), and how many of how many items are done; 0: unknown. The texts are valid during the call. May be NULL. */
  void (*progress)(void *user_data, const char *model, const char *device, const char *what, uint32_t done, uint32_t total);
  void *user_data;
} clv_profile_options;
#define CLV_PROFILE_OPTIONS_INIT \
  { sizeof(clv_profile_options), CLV_PROFILE_ALL, 0, false, 0, NULL, NULL, NULL }

/* Measures devices, and the nodes of graphs on each of them, and adds the results to the profile. Without graphs (`graph_count`
 * 0), measures common operators in several sizes. `options` may be NULL. Devices are measured one after the other, on a thread of
 * the library. Measure on an idle machine.
 *
 * Devices whose drivers keep threads disturb the measurements of the others. To avoid this, measure CLV_PROFILE_DEVICES, close
 * the devices, open them again, and measure CLV_PROFILE_NODES.
 *
 * Once the budget is spent, the call ends with CLV_OK, and clv_profile_info.is_partial is true.
 * Errors: CLV_CANCELLED by go_on(); CLV_INVALID_ARGUMENT for options, and for sizes that contradict a graph; CLV_NOT_FOUND for
 * sizes of an unknown symbol or input; CLV_DEVICE_ERROR; CLV_OUT_OF_MEMORY; CLV_IO_ERROR if a model's file changed after it was
 * loaded. A node that fails on a device is no error: it is logged, and the profile does not get its time. */
CLV_API CLV_MUST_USE clv_status clv_profile_measure(clv_profile *profile, clv_devices *devices, const clv_profile_graph *graphs,
                                                    uint32_t graph_count, const clv_profile_options *options, clv_error *error);

/* What clv_profile_measure() would measure for CLV_PROFILE_NODES. */
typedef struct clv_profile_expectation {
  uint32_t struct_size;
  uint32_t node_count;  /* nodes of different kinds or shapes, summed over the devices */
  uint32_t block_count; /* the most blocks */
  double seconds;       /* a rough estimate, from the prices of the nodes; the devices should have been measured before */
} clv_profile_expectation;

/* Estimates the work of clv_profile_measure() with the same arguments. Runs nothing. Fills `expectation` as far as its
 * struct_size says. Errors: as clv_profile_measure(). */
CLV_API CLV_MUST_USE clv_status clv_profile_expect(clv_profile *profile, clv_devices *devices, const clv_profile_graph *graphs,
                                                   uint32_t graph_count, const clv_profile_options *options,
                                                   clv_profile_expectation *expectation, clv_error *error);

/* ---- Files ---- */

/* Adds to `profile` what only `from` has. Where both have a measurement, that of `profile` stays. */
CLV_API CLV_MUST_USE clv_status clv_profile_merge(clv_profile *profile, const clv_profile *from, clv_error *error);
/* Writes the file completely or not at all, and replaces an existing one. Equal profiles give equal bytes. */
CLV_API CLV_MUST_USE clv_status clv_profile_write(const clv_profile *profile, const char *path, clv_error *error);
/* Merges the file into the profile, if it exists and is valid, and writes it. If several processes do this at the same time, no
 * measurement is lost. */
CLV_API CLV_MUST_USE clv_status clv_profile_update(clv_profile *profile, const char *path, clv_error *error);
/* Makes the text of the profile file: JSON, terminated by a zero byte. Free it with clv_text_free(). */
CLV_API CLV_MUST_USE clv_status clv_profile_json(const clv_profile *profile, char **text, clv_error *error);

/* ---- Results ---- */

typedef struct clv_profile_info {
  uint32_t struct_size;
  bool is_partial;       /* the last call that measured the devices, or a later one for nodes, did not measure everything */
  uint32_t device_count; /* in the profile */
  uint32_t block_count;  /* measured blocks, single nodes included, on `devices` */
  uint32_t shaky_count;  /* blocks whose repeated measurements varied by more than an eighth, perhaps because other programs were
                            running */
} clv_profile_info;
/* Fills `info` as far as its struct_size says. `devices`: count only blocks of these; NULL: of all devices of the profile. */
CLV_API void clv_profile_get_info(const clv_profile *profile, const clv_devices *devices, clv_profile_info *info);

/* Makes a table of the devices: launch time, peak rates, number of measured entries, and the median difference between the
 * predicted and the measured times of blocks. `devices`: only these, under their names here; NULL: all devices of the profile.
 * `brief`: without the explanation of the columns. As JSON: {"partial": ..., "devices": [...]}. Free the text with
 * clv_text_free(). */
CLV_API CLV_MUST_USE clv_status clv_profile_text(const clv_profile *profile, const clv_devices *devices, bool brief,
                                                 clv_form form, char **text, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
