/* Reading a session: devices that failed, where executables came from, how partitions are launched, and memory. Unstable: may
 * change until 1.0.
 *
 * Functions that fill a struct copy as many bytes as its struct_size says, which the caller sets first. They return false, and
 * fill it with zeros, for an index beyond the count. Strings are valid as long as the session, unless stated otherwise. Any
 * thread may call these functions. Those that concern partitions describe the plan that the session runs now, and must not
 * overlap with a run, which may replace it. */
#ifndef CLEAVE_SESSION_INFO_H
#define CLEAVE_SESSION_INFO_H

#include "plan_contents.h"
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The plan that the session runs: clv_session_plan(), or another one after a device was removed or weights were loaded. Valid
 * until the next run or clv_session_load_weights(). */
CLV_API const clv_plan *clv_session_current_plan(clv_session *session);

/* ---- Devices that failed ---- */

/* A device that failed and was removed from the session, and whose partitions were placed on other devices. */
typedef struct clv_fallback_info {
  uint32_t struct_size;
  uint32_t device;    /* its index in the devices of the plan */
  clv_status status;  /* of its failure */
  const char *reason; /* the text of its failure */
  uint32_t partition_count;
  uint32_t onto;  /* the devices that received its partitions: bit k is set for the device with index k */
  double cost_ms; /* time of the failed attempt, of placing and of compiling, without the repetition of the run */
} clv_fallback_info;
/* In the order in which they were removed. */
CLV_API bool clv_session_fallback(clv_session *session, uint32_t index, clv_fallback_info *info);

/* ---- Executables and launches ---- */

typedef enum clv_executable_source {
  CLV_EXECUTABLE_FROM_MEMORY = 0, /* another session of these devices uses it */
  CLV_EXECUTABLE_FROM_FOLDER = 1, /* compiled ahead of time: compiled.h */
  CLV_EXECUTABLE_FROM_DISK = 2,   /* found in the cache's directory */
  CLV_EXECUTABLE_COMPILED = 3,    /* compiled, and now in the cache */
  CLV_EXECUTABLE_NOT_KEPT = 4,    /* compiled, but not cached: the next session compiles it again */
  CLV_EXECUTABLE_HOSTED = 5       /* there is none: the host runs the partition, which has only views */
} clv_executable_source;

typedef struct clv_executable_origin {
  uint32_t struct_size;
  clv_executable_source source;
  bool is_missed;     /* the folder of clv_session_options.compiled lacks it, or its file cannot be used: see `reason` */
  const char *reason; /* why it was compiled; "" if it was found. Valid until the next run */
  double time_ms;     /* what it took to get it, without uploading weights */
} clv_executable_origin;
/* Where the executable of a partition came from. */
CLV_API bool clv_session_executable(clv_session *session, uint32_t partition, clv_executable_origin *origin);

typedef enum clv_launch_state {
  CLV_LAUNCH_UNKNOWN = 0,  /* the partition has not run yet */
  CLV_LAUNCH_EAGER = 1,    /* launch by launch */
  CLV_LAUNCH_CAPTURED = 2, /* recorded in the last run, and then launched */
  CLV_LAUNCH_REPLAYED = 3  /* launched from an earlier recording */
} clv_launch_state;

typedef struct clv_launch_info {
  uint32_t struct_size;
  clv_launch_state state;
  const char *reason; /* CLV_LAUNCH_EAGER: why nothing was captured; otherwise NULL */
} clv_launch_info;
/* How the launches of a partition were issued in the last run. */
CLV_API bool clv_session_launch(clv_session *session, uint32_t partition, clv_launch_info *info);

/* The captures of a device, for all sessions of its set of devices. */
typedef struct clv_capture_info {
  uint32_t struct_size;
  uint64_t hits;      /* launches of a capture */
  uint64_t misses;    /* runs without a capture, and runs that made one */
  uint64_t captures;  /* successful captures, kept or not */
  uint64_t failures;  /* captures that failed */
  uint64_t evictions; /* captures that were evicted for others */
  uint64_t entries;   /* captures that are kept now, and their memory */
  uint64_t size_bytes;
  uint64_t patches;    /* times that the bindings of a captured partition were changed to other locations */
  uint64_t recaptures; /* captures made again because bindings could not be moved */
  uint64_t saved_ns;   /* host time saved, compared with issuing the launches one by one */
  bool knows_saved;    /* false: the device computes in the calling thread, so saved_ns includes its computations */
} clv_capture_info;
/* Also returns false for a device that captures nothing. */
CLV_API bool clv_session_captures(const clv_session *session, uint32_t device, clv_capture_info *info);

/* ---- Memory ---- */

typedef struct clv_session_stats {
  uint32_t struct_size;
  uint32_t space_count;                                             /* memory spaces: see clv_session_space() */
  double compile_ms;                                                /* all partitions, including uploads of weights */
  double executables_ms;                                            /* getting executables */
  double weights_ms;                                                /* uploading weights */
  uint64_t weight_bytes;                                            /* uploaded to devices */
  uint64_t shared_bytes;                                            /* weights that were already on devices, for other sessions */
  uint64_t resident_bytes;                                          /* executables, without their weights */
  uint32_t from_memory, from_folder, from_disk, compiled, not_kept; /* executables by source */
} clv_session_stats;
CLV_API void clv_session_get_stats(clv_session *session, clv_session_stats *stats);

typedef struct clv_space_info {
  uint32_t struct_size;
  const char *name; /* "host", or another name: see clv_device_info */
  uint64_t
      planned_bytes;    /* for values between partitions, of all requests in flight, each with its largest set of shapes so far */
  uint64_t bound_bytes; /* lower bound of planned_bytes if steps run one after the other */
  uint64_t scratch_bytes; /* working memory of the devices */
  uint64_t peak_bytes;    /* the most that was ever allocated in the space, by all sessions of these devices */
  uint64_t need_bytes;    /* what the plan needs of a limited space; 0 without a limit */
  uint64_t limit_bytes;   /* 0: none */
} clv_space_info;
CLV_API bool clv_session_space(clv_session *session, uint32_t index, clv_space_info *info);

/* Returns memory to the system that was needed only to create sessions: free pages of the heap, and pages of mapped files that
 * the process only reads, mainly code and tables of libraries, which return when they are accessed. It affects the whole
 * process, so the library never calls it. Returns the number of bytes of mapped files that were dropped. */
CLV_API size_t clv_memory_trim(void);

/* ---- Documents ---- */

/* The parts of clv_session_report(). */
#define CLV_REPORT_EXECUTABLES 1u
#define CLV_REPORT_FALLBACKS 2u
#define CLV_REPORT_CAPTURES 4u
#define CLV_REPORT_MEMORY 8u

/* Makes a document of the above, as `cleave bench` prints it. `parts` combines CLV_REPORT_ constants. JSON is an object with the
 * members "executables", "fallbacks", "graphs" (captures) and "memory". The text is empty if there is nothing to report. Free it
 * with clv_text_free(). Must not overlap with a run.
 * Errors: CLV_INVALID_ARGUMENT for unknown parts or an unknown form; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_session_report(clv_session *session, uint32_t parts, clv_form form, char **text,
                                                   clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
