/* See interposer.h. Creates and destroys the interposer, calls the hook, keeps the log, tracks live objects, and defers the work
 * of devices that hang. The table of slots is in interposer_slots.c. */
#include "interposer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "interposer_own.h"

#define NAME(name, fails) #name,
#define FAILS(name, fails) fails,
static const char *const slot_names[] = {INTERPOSER_SLOTS(NAME)};
static const bool slot_fails[] = {INTERPOSER_SLOTS(FAILS)};

const char *interposer_slot_name(interposer_slot slot) {
  return slot_names[slot];
}
bool interposer_slot_fails(interposer_slot slot) {
  return slot_fails[slot];
}
bool interposer_slot_enqueues(interposer_slot slot) {
  return slot == INTERPOSER_execute || slot == INTERPOSER_copy_in || slot == INTERPOSER_copy_out ||
         slot == INTERPOSER_event_record || slot == INTERPOSER_event_wait || slot == INTERPOSER_captured_launch;
}

/* Returns `pointer`, the result of an allocation. Aborts if it is NULL. */
static void *must(void *pointer) {
  if (pointer == NULL) abort();
  return pointer;
}

/* ---- Creation and destruction ---- */

interposer *interposer_create(const interposer_options *options) {
  interposer *self = must(calloc(1, sizeof *self));
  self->options = *options;
  self->hook = options->hook;
  self->user_data = options->user_data;
  pthread_mutex_init(&self->lock, NULL);
  return self;
}

void interposer_destroy(interposer *self) {
  if (self == NULL) return;
  pthread_mutex_destroy(&self->lock);
  free(self->objects);
  free(self->log);
  free(self);
}

clv_status interposer_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  interposer *self = user_data;
  self->host = host;
  CLV__TRY(self->options.query(host, self->options.query_user_data, &self->inner, error));
  interposer_fill(self);
  *backend = &self->table;
  return CLV_OK;
}

void interposer_set_hook(interposer *self, interposer_hook hook, void *user_data) {
  pthread_mutex_lock(&self->lock);
  self->hook = hook;
  self->user_data = user_data;
  pthread_mutex_unlock(&self->lock);
}

/* ---- Calls ---- */

static void log_slot(interposer *self, interposer_slot slot) {
  if (self->log_count == self->log_capacity) {
    self->log_capacity = self->log_capacity == 0 ? 256 : 2 * self->log_capacity;
    self->log = must(realloc(self->log, self->log_capacity));
  }
  self->log[self->log_count++] = (uint8_t)slot;
}

interposer_fate interposer_ask(interposer *self, interposer_call call) {
  pthread_mutex_lock(&self->lock);
  call.number = ++self->calls;
  call.slot_number = ++self->counts[call.slot];
  log_slot(self, call.slot);
  interposer_hook hook = self->hook;
  void *cookie = self->user_data;
  pthread_mutex_unlock(&self->lock);
  interposer_fate fate = {0};
  if (hook != NULL) fate = hook(cookie, &call);
  if (fate.delay_s > 0) {
    struct timespec pause = {(time_t)fate.delay_s, (long)((fate.delay_s - (double)(time_t)fate.delay_s) * 1e9)};
    nanosleep(&pause, NULL);
  }
  return fate;
}

clv_status interposer_fail(const interposer_fate *fate, interposer_slot slot, clv_error *error) {
  clv_status status = fate->status == CLV_OK ? CLV_DEVICE_ERROR : fate->status;
  if (fate->message != NULL) return clv__error_set(error, status, "%s", fate->message);
  return clv__error_set(error, status, "%s: made to fail", slot_names[slot]);
}

uint64_t interposer_calls(interposer *self) {
  pthread_mutex_lock(&self->lock);
  uint64_t calls = self->calls;
  pthread_mutex_unlock(&self->lock);
  return calls;
}

uint64_t interposer_count(interposer *self, interposer_slot slot) {
  pthread_mutex_lock(&self->lock);
  uint64_t count = self->counts[slot];
  pthread_mutex_unlock(&self->lock);
  return count;
}

void interposer_log_clear(interposer *self) {
  pthread_mutex_lock(&self->lock);
  self->log_count = 0;
  pthread_mutex_unlock(&self->lock);
}

void interposer_log_text(interposer *self, uint64_t slots, char *text, size_t bytes) {
  size_t used = 0;
  text[0] = '\0';
  pthread_mutex_lock(&self->lock);
  for (size_t i = 0; i < self->log_count && used < bytes;) {
    interposer_slot slot = (interposer_slot)self->log[i++];
    if ((slots >> slot & 1u) == 0) continue;
    size_t times = 1;
    for (; i < self->log_count && (self->log[i] == slot || (slots >> self->log[i] & 1u) == 0); ++i) times += self->log[i] == slot;
    used += (size_t)snprintf(text + used, bytes - used, "%s%s", used > 0 ? " " : "", slot_names[slot]);
    if (times > 1 && used < bytes) used += (size_t)snprintf(text + used, bytes - used, "*%zu", times);
  }
  pthread_mutex_unlock(&self->lock);
}

/* ---- Live objects ---- */

static const char *const kind_names[] = {"capture", "instance", "executable", "weight", "event", "stream", "buffer"};

void interposer_misuse(interposer *self, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&self->lock);
  if (self->misuse[0] == '\0') vsnprintf(self->misuse, sizeof self->misuse, format, arguments);
  pthread_mutex_unlock(&self->lock);
  va_end(arguments);
}

void interposer_made(clv_device *device, object_kind kind, void *pointer) {
  interposer *self = device->owner;
  pthread_mutex_lock(&self->lock);
  if (self->object_count == self->object_capacity) {
    self->object_capacity = self->object_capacity == 0 ? 64 : 2 * self->object_capacity;
    self->objects = must(realloc(self->objects, self->object_capacity * sizeof *self->objects));
  }
  self->objects[self->object_count++] = (object){kind, device, pointer};
  pthread_mutex_unlock(&self->lock);
}

/* Removes an object from the list. A backend may return the same pointer for two uploads of a weight: it is then listed twice,
 * and each release removes one entry. */
void interposer_gone(clv_device *device, object_kind kind, const void *pointer) {
  interposer *self = device->owner;
  if (pointer == NULL) return;
  bool is_used = false;
  pthread_mutex_lock(&device->lock);
  if (device->first != NULL) is_used = interposer_forget(device, pointer);
  pthread_mutex_unlock(&device->lock);
  if (is_used) interposer_misuse(self, "a device that hangs still needs the %s that was destroyed", kind_names[kind]);
  pthread_mutex_lock(&self->lock);
  size_t i = self->object_count;
  while (i > 0 && (self->objects[i - 1].pointer != pointer || self->objects[i - 1].kind != kind)) --i;
  bool is_known = i > 0;
  if (is_known) self->objects[i - 1] = self->objects[--self->object_count];
  pthread_mutex_unlock(&self->lock);
  if (!is_known) interposer_misuse(self, "a %s was destroyed that does not exist, or was already destroyed", kind_names[kind]);
}

uint64_t interposer_live(interposer *self) {
  pthread_mutex_lock(&self->lock);
  uint64_t count = self->object_count;
  pthread_mutex_unlock(&self->lock);
  return count;
}

uint64_t interposer_left(interposer *self) {
  pthread_mutex_lock(&self->lock);
  uint64_t left = self->left;
  pthread_mutex_unlock(&self->lock);
  return left;
}

bool interposer_misused(interposer *self, char *text, size_t bytes) {
  pthread_mutex_lock(&self->lock);
  bool misused = self->misuse[0] != '\0';
  if (misused) snprintf(text, bytes, "%s", self->misuse);
  pthread_mutex_unlock(&self->lock);
  return misused;
}

static void destroy(const object *o) {
  const clv_backend *inner = o->device->owner->inner;
  clv_device *device = o->device->inner;
  switch (o->kind) {
    case OBJECT_CAPTURED:
      inner->capture->destroy(device, o->pointer);
      break;
    case OBJECT_INSTANCE:
      inner->instance_destroy(device, o->pointer);
      break;
    case OBJECT_EXECUTABLE:
      inner->executable_destroy(device, o->pointer);
      break;
    case OBJECT_WEIGHT:
      inner->weight_release(device, o->pointer);
      break;
    case OBJECT_EVENT:
      inner->event_destroy(device, ((clv_event *)o->pointer)->inner);
      free(o->pointer);
      break;
    case OBJECT_STREAM:
      inner->stream_destroy(device, ((clv_stream *)o->pointer)->inner);
      free(o->pointer);
      break;
    default:
      inner->buffer_free(device, o->pointer);
  }
}

void interposer_clear(clv_device *device) {
  interposer *self = device->owner;
  pthread_mutex_lock(&self->lock);
  for (object_kind kind = 0; kind < OBJECT_KIND_COUNT; ++kind) {
    for (size_t i = self->object_count; i-- > 0;) {
      object o = self->objects[i];
      if (o.device != device || o.kind != kind) continue;
      self->objects[i] = self->objects[--self->object_count];
      ++self->left;
      destroy(&o);
    }
  }
  pthread_mutex_unlock(&self->lock);
}

/* ---- Devices that hang ---- */

clv_status interposer_hang(clv_device *device, clv_error *error) {
  uint64_t releases = device->releases;
  ++device->waiters;
  while (!device->is_closing && device->releases == releases) pthread_cond_wait(&device->changed, &device->lock);
  --device->waiters;
  pthread_cond_broadcast(&device->changed);
  return device->releases != releases ? CLV_OK : clv__error_set(error, CLV_DEVICE_ERROR, "the device was closed while it hung");
}

static size_t args_bytes(const clv_execute_args *args) {
  return (args->input_count + args->output_count) * sizeof(clv_binding);
}

void interposer_defer(clv_device *device, const deferred *work) {
  deferred *copy = must(malloc(sizeof *copy + args_bytes(&work->args)));
  clv_binding *bindings = (clv_binding *)(copy + 1);
  *copy = *work;
  copy->next = NULL;
  if (work->kind == DEFERRED_EXECUTE) {
    bool is_sized = true;
    for (uint32_t i = 0; i < work->args.output_count; ++i)
      is_sized = is_sized && work->args.outputs[i].type.rank != CLV_RANK_UNKNOWN;
    if (work->args.input_count > 0) memcpy(bindings, work->args.inputs, work->args.input_count * sizeof *bindings);
    copy->args.inputs = bindings;
    if (is_sized && work->args.output_count > 0) {
      memcpy(bindings + work->args.input_count, work->args.outputs, work->args.output_count * sizeof *bindings);
      copy->args.outputs = bindings + work->args.input_count;
    }
  }
  *device->last = copy;
  device->last = &copy->next;
}

static clv_status replay_one(clv_device *device, deferred *work) {
  const clv_backend *inner = device->owner->inner;
  clv_device *to = device->inner;
  clv_stream *stream = work->stream == NULL ? NULL : work->stream->inner;
  switch (work->kind) {
    case DEFERRED_EXECUTE:
      return inner->execute(to, work->instance, stream, &work->args, NULL);
    case DEFERRED_COPY_IN:
      return inner->copy_in(to, stream, work->buffer, work->offset, work->host, work->size_bytes, NULL);
    case DEFERRED_COPY_OUT:
      return inner->copy_out(to, stream, work->host, work->buffer, work->offset, work->size_bytes, NULL);
    case DEFERRED_RECORD:
      work->event->is_hung = false;
      return inner->event_record(to, work->event->inner, stream, NULL);
    case DEFERRED_WAIT:
      return inner->event_wait(to, stream, work->event->inner, NULL);
    case DEFERRED_LAUNCH:
      return inner->capture->launch(to, work->captured, stream, NULL);
    default:
      if (inner->event_notify != NULL) return inner->event_notify(to, work->event->inner, work->notify, work->cookie, NULL);
      clv_status status = inner->event_synchronize(to, work->event->inner, NULL);
      work->notify(work->cookie);
      return status;
  }
}

void interposer_replay(clv_device *device) {
  while (device->first != NULL) {
    deferred *work = device->first;
    if (work->stream != NULL) work->stream->is_hung = false;
    clv_status status = replay_one(device, work);
    if (status != CLV_OK && work->stream != NULL) work->stream->failed = status;
    device->first = work->next;
    if (device->first == NULL) device->last = &device->first;
    free(work);
  }
}

bool interposer_refers(const deferred *work, const void *thing) {
  return work->stream == thing || work->event == thing || work->instance == thing || work->captured == thing ||
         work->buffer == thing;
}

bool interposer_forget(clv_device *device, const void *thing) {
  bool any = false;
  for (deferred **link = &device->first; *link != NULL;) {
    deferred *work = *link;
    if (thing != NULL && !interposer_refers(work, thing)) {
      link = &work->next;
      continue;
    }
    any = true;
    *link = work->next;
    if (work->next == NULL) device->last = link;
    free(work);
  }
  return any;
}

void interposer_release(interposer *self) {
  for (uint32_t d = 0; d < self->device_count; ++d) {
    clv_device *device = self->devices[d];
    if (device == NULL) continue;
    pthread_mutex_lock(&device->lock);
    interposer_replay(device);
    ++device->releases;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
  }
}
