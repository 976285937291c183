/* Reports what a session did: the parts of clv_session_report() (cleave/session_info.h). */
#ifndef CLEAVE_REPORT_SESSION_H
#define CLEAVE_REPORT_SESSION_H

#include <jansson.h>

#include "base/text.h"
#include "cleave/session_info.h"

/* Append parts as text, or add them to an object. `parts` combines CLV_REPORT_ constants. */
void clv__session_report_text(clv_session *session, uint32_t parts, bool is_terminal, clv__text *text);
void clv__session_report_json(clv_session *session, uint32_t parts, json_t *object);

#endif
