/* Saves programs to files and loads them. The host keeps the files in its cache, under a key derived from everything that
 * compile() saw. A file may be old, truncated or malicious, so nothing in it is trusted. */
#include "template.h"

/* A file begins with a `header`, which contains these counts. Values and steps follow, then for each weight the length of its
 * name and the name's bytes. Numbers are in this machine's byte order. On a machine with another byte order, the checksum does
 * not match, and the file is rejected. */
typedef struct counts {
  uint32_t inputs, outputs, weights, values, steps;
  uint32_t operators; /* length of template_operators, to which steps refer; the field also keeps the header free of padding */
} counts;

typedef struct header {
  char magic[8];
  uint64_t checksum; /* over everything that follows */
  counts counts;
} header;

static const char magic[8] = "clvtmpl1";

/* FNV-1a, to detect accidental damage. An attacker can write a valid checksum; is_sound() protects against that. */
static uint64_t add_to_checksum(uint64_t sum, const void *data, size_t size_bytes) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size_bytes; ++i) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
  return sum;
}
#define CHECKSUM_START UINT64_C(0xcbf29ce484222325)

static clv_status sum_up(void *cookie, const void *data, size_t size_bytes) {
  uint64_t *sum = cookie;
  *sum = add_to_checksum(*sum, data, size_bytes);
  return CLV_OK;
}

static clv_status write_body(const clv_executable *executable, clv_write_fn write, void *cookie) {
  clv_status status = write(cookie, executable->values, executable->value_count * sizeof *executable->values);
  if (status == CLV_OK) status = write(cookie, executable->steps, executable->step_count * sizeof *executable->steps);
  for (uint32_t i = 0; status == CLV_OK && i < executable->weight_count; ++i) {
    const uint32_t length = (uint32_t)strlen(executable->weights[i]);
    status = write(cookie, &length, sizeof length);
    if (status == CLV_OK) status = write(cookie, executable->weights[i], length);
  }
  return status;
}

clv_status template_executable_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                    clv_error *error) {
  header head = {.checksum = CHECKSUM_START,
                 .counts = {executable->input_count, executable->output_count, executable->weight_count, executable->value_count,
                            executable->step_count, template_operator_count}};
  (void)device;
  memcpy(head.magic, magic, sizeof magic);
  head.checksum = add_to_checksum(head.checksum, &head.counts, sizeof head.counts);
  clv_status status = write_body(executable, sum_up, &head.checksum);
  if (status == CLV_OK) status = write(cookie, &head, sizeof head);
  if (status == CLV_OK) status = write_body(executable, write, cookie);
  return status == CLV_OK ? CLV_OK : clv_host_fail(error, status, "the program could not be written");
}

/* ---- Reading ---- */

typedef struct reader {
  const uint8_t *at;
  size_t left;
} reader;

static bool read_bytes(reader *r, void *to, size_t size_bytes) {
  if (size_bytes > r->left) return false;
  if (size_bytes > 0) memcpy(to, r->at, size_bytes);
  r->at += size_bytes;
  r->left -= size_bytes;
  return true;
}

static bool read_names(const clv_host *host, reader *r, clv_executable *program) {
  for (uint32_t i = 0; i < program->weight_count; ++i) {
    uint32_t length;
    if (!read_bytes(r, &length, sizeof length) || length > r->left) return false;
    program->weights[i] = clv_host_allocate(host, (size_t)length + 1);
    if (program->weights[i] == NULL || !read_bytes(r, program->weights[i], length)) return false;
    if (memchr(program->weights[i], '\0', length) != NULL) return false;
  }
  return r->left == 0;
}

/* Checks that every index is in range, that every value is written before a step reads it, and that every output is written
 * once. `seen` has one entry per output, all false. */
static bool is_sound(const clv_executable *p, bool *seen) {
  uint32_t outputs = 0;
  for (uint32_t v = 0; v < p->value_count; ++v) {
    const template_value *value = &p->values[v];
    const uint32_t limits[SOURCE_COUNT] = {p->input_count, p->weight_count, p->step_count};
    if (value->source >= SOURCE_COUNT || value->index >= limits[value->source]) return false;
    if (value->source == FROM_STEP && p->steps[value->index].output != v) return false;
    if (value->output == NO_OUTPUT) continue;
    if (value->source != FROM_STEP || value->output < 0 || (uint32_t)value->output >= p->output_count) return false;
    if (seen[value->output]) return false;
    seen[value->output] = true;
    ++outputs;
  }
  for (uint32_t s = 0; s < p->step_count; ++s) {
    const template_step *step = &p->steps[s];
    if (step->op >= template_operator_count || step->output >= p->value_count) return false;
    if (p->values[step->output].source != FROM_STEP || p->values[step->output].index != s) return false;
    for (uint32_t i = 0; i < template_operators[step->op].input_count; ++i) {
      if (step->inputs[i] >= p->value_count) return false;
      const template_value *input = &p->values[step->inputs[i]];
      if (input->source == FROM_STEP && input->index >= s) return false;
    }
  }
  return outputs == p->output_count;
}

clv_status template_executable_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                                    clv_error *error) {
  const clv_host *host = device->base.host;
  reader r = {data, size_bytes};
  header head;
  *executable = NULL;
  if (!read_bytes(&r, &head, sizeof head) || memcmp(head.magic, magic, sizeof magic) != 0) {
    return clv_host_fail(error, CLV_INVALID_MODEL, "not a program of the template backend");
  }
  const uint64_t sum = add_to_checksum(CHECKSUM_START, &head.counts, sizeof head.counts);
  if (add_to_checksum(sum, r.at, r.left) != head.checksum) {
    return clv_host_fail(error, CLV_INVALID_MODEL, "the program is damaged: its checksum is wrong");
  }
  if (head.counts.operators != template_operator_count) {
    return clv_host_fail(error, CLV_INVALID_MODEL, "the program is from another version of the template backend");
  }
  const clv_executable counted = {.input_count = head.counts.inputs,
                                  .output_count = head.counts.outputs,
                                  .weight_count = head.counts.weights,
                                  .value_count = head.counts.values,
                                  .step_count = head.counts.steps};
  /* Reject counts that exceed what the file can hold, before anything is allocated. */
  if (counted.value_count > r.left / sizeof(template_value) || counted.step_count > r.left / sizeof(template_step) ||
      counted.weight_count > r.left / sizeof(uint32_t) || counted.output_count > counted.step_count) {
    return clv_host_fail(error, CLV_INVALID_MODEL, "the program is damaged: its header does not fit its size");
  }
  clv_executable *program = template_program_create(host, &counted);
  bool *seen = clv_host_allocate(host, counted.output_count);
  clv_status status = CLV_OK;
  if (program == NULL || seen == NULL) {
    status = clv_host_fail(error, CLV_OUT_OF_MEMORY, "not enough memory for a program of %u steps", counted.step_count);
  } else if (!read_bytes(&r, program->values, program->value_count * sizeof *program->values) ||
             !read_bytes(&r, program->steps, program->step_count * sizeof *program->steps) || !read_names(host, &r, program) ||
             !is_sound(program, seen)) {
    status = clv_host_fail(error, CLV_INVALID_MODEL, "the program is damaged, or there is not enough memory for its names");
  }
  clv_host_release(host, seen);
  if (status != CLV_OK) {
    template_executable_destroy(device, program);
    return status;
  }
  *executable = program;
  return CLV_OK;
}
