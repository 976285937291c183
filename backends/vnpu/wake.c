/* Decides which threads to wake: see queue.h. A thread that is awake is not signalled, because it checks for work before it
 * sleeps. */
#include <string.h>

#include "queue_own.h"

clv__vnpu_command *clv__vnpu_stream_head(clv_stream *stream) {
  return stream->enqueued == stream->finished ? NULL : &stream->ring[stream->finished % CLV__VNPU_RING];
}

clv__vnpu_engine *clv__vnpu_engine_of(clv__vnpu_queue *queue, const clv__vnpu_command *command) {
  if (command->kind == CLV__VNPU_LAUNCH) return &queue->engines[CLV__VNPU_COMPUTE];
  bool copies = command->kind == CLV__VNPU_COPY_IN || command->kind == CLV__VNPU_COPY_OUT;
  return copies ? &queue->engines[CLV__VNPU_DMA] : NULL;
}

bool clv__vnpu_copy_is_small(const clv__vnpu_queue *queue, const clv__vnpu_command *command) {
  bool copies = command->kind == CLV__VNPU_COPY_IN || command->kind == CLV__VNPU_COPY_OUT;
  return copies && command->copy.size_bytes < queue->small_copy_bytes;
}

const clv__vnpu_command *clv__vnpu_stream_work(clv_stream *stream) {
  const clv__vnpu_command *c = stream->busy ? NULL : clv__vnpu_stream_head(stream);
  return c != NULL && clv__vnpu_engine_of(stream->queue, c) != NULL ? c : NULL;
}

static void rouse(clv__vnpu_engine *engine, bool has_work) {
  if (!has_work || !engine->asleep) return;
  engine->asleep = false;
  engine->queue->roused[engine->kind] = true;
}

void clv__vnpu_rouse(clv__vnpu_queue *queue) {
  clv__vnpu_engine *compute = &queue->engines[CLV__VNPU_COMPUTE], *dma = &queue->engines[CLV__VNPU_DMA];
  if (!compute->asleep && !dma->asleep) return;
  bool launch = false, small = false, large = false;
  for (clv_stream *s = queue->streams; s != NULL; s = s->next) {
    const clv__vnpu_command *c = clv__vnpu_stream_work(s);
    if (c == NULL) continue;
    if (c->kind == CLV__VNPU_LAUNCH)
      launch = true;
    else if (clv__vnpu_copy_is_small(queue, c))
      small = true;
    else
      large = true;
  }
  rouse(compute, launch || small);
  rouse(dma, large || (small && (launch || compute->away)));
}

void clv__vnpu_stir(clv__vnpu_queue *queue) {
  for (const clv__vnpu_waiter *w = queue->waiters; w != NULL && !queue->stirred; w = w->next) {
    queue->stirred = w->count == NULL || *w->count >= w->target;
  }
}

bool clv__vnpu_queue_is_owing(const clv__vnpu_queue *queue) {
  return queue->stirred || queue->roused[CLV__VNPU_COMPUTE] || queue->roused[CLV__VNPU_DMA];
}

void clv__vnpu_queue_unlock(clv__vnpu_queue *queue) {
  bool roused[CLV__VNPU_ENGINES], stirred = queue->stirred;
  memcpy(roused, queue->roused, sizeof roused);
  memset(queue->roused, 0, sizeof queue->roused);
  queue->stirred = false;
  pthread_mutex_unlock(&queue->lock);
  for (int e = 0; e < CLV__VNPU_ENGINES; ++e) {
    if (roused[e]) pthread_cond_signal(&queue->engines[e].work);
  }
  if (stirred) pthread_cond_broadcast(&queue->changed);
}
