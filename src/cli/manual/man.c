/* Man pages, in the macros of man(7). The pages are made when Cleave is built; `cleave help --man` prints one. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/manual/topic.h"

enum { LINE_END = 79 };

/* Takes the next character of `text`. Sets `source` to what stands for it in a page, so that nothing in a text is markup.
 * Characters beyond ASCII become names, because readers may expect any encoding. Returns the length of the source. */
static int next_character(const char **text, char source[16]) {
  static const struct {
    char c;
    const char *name;
  } special[] = {{'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  unsigned char c = (unsigned char)*(*text)++;
  for (size_t k = 0; k < sizeof special / sizeof *special; ++k) {
    if ((char)c == special[k].c) return snprintf(source, 16, "%s", special[k].name);
  }
  if (c < 0x80) return snprintf(source, 16, "%c", c);
  uint32_t code = c >= 0xf0 ? c & 0x07u : c >= 0xe0 ? c & 0x0fu : c & 0x1fu;
  while (((unsigned char)**text & 0xc0) == 0x80) code = code << 6 | ((unsigned char)*(*text)++ & 0x3fu);
  return snprintf(source, 16, "\\[u%04X]", code);
}

static int source_bytes(const char *text, size_t length) {
  char source[16];
  int bytes = 0;
  for (const char *end = text + length; text < end;) bytes += next_character(&text, source);
  return bytes;
}

static int put(FILE *out, const char *text, size_t length) {
  char source[16];
  int bytes = 0;
  for (const char *end = text + length; text < end;) {
    bytes += next_character(&text, source);
    fputs(source, out);
  }
  return bytes;
}

/* Whether a sentence ends with this word; roff wants the next one on another line. */
static bool ends_sentence(const char *word, size_t length) {
  while (length > 0 && strchr("')\"", word[length - 1]) != NULL) --length;
  return length > 1 && strchr(".!?", word[length - 1]) != NULL && word[length - 2] != '.';
}

/* Writes words as lines of their own. A line must not begin with a control character. */
static void put_words(FILE *out, const char *text) {
  int column = 0;
  bool is_new = true;
  for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
    size_t length = strcspn(text, " ");
    if (!is_new && column + 1 + source_bytes(text, length) > LINE_END) is_new = true, fputc('\n', out);
    if (is_new) column = 0;
    if (!is_new) fputc(' ', out);
    if (is_new && (*text == '.' || *text == '\'')) column += fprintf(out, "\\&");
    column += !is_new + put(out, text, length);
    is_new = ends_sentence(text, length);
    text += length;
    if (is_new && text[strspn(text, " ")] != '\0') fputc('\n', out);
  }
  fputc('\n', out);
}

static void put_text(FILE *out, const char *text) {
  put(out, text, strlen(text));
}

static void put_section(FILE *out, const char *title) {
  fprintf(out, ".SH %s\n", title);
}

/* ".TP", and its tag in bold. */
static void put_tag(FILE *out, const char *tag) {
  fputs(".TP\n\\fB", out);
  put_text(out, tag);
  fputs("\\fR\n", out);
}

/* .TH and NAME. The day is that of the build; SOURCE_DATE_EPOCH sets it. */
static void put_title(FILE *out, const char *page, const char *summary) {
  static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const char *date = __DATE__; /* "Nov 28 2026" */
  char month[4] = {date[0], date[1], date[2], '\0'};
  int number = (int)(strstr(months, month) - months) / 3 + 1;
  fputs(".\\\" Made by 'cleave help --man'.\n.TH ", out);
  for (const char *at = page; *at != '\0'; ++at)
    fputs(*at == '-' ? "\\-" : (char[]){(char)toupper((unsigned char)*at), '\0'}, out);
  fprintf(out, " 1 %.4s-%02d-%c%c \"cleave %s\" \"Cleave Manual\"\n", date + 7, number, date[4] == ' ' ? '0' : date[4], date[5],
          clv_version());
  put_section(out, "NAME");
  put_text(out, page);
  fputs(" \\- ", out);
  put_words(out, summary);
}

static void put_description(FILE *out, const char *text) {
  char word[64], paragraph[2048];
  bool is_first = true;
  while ((text = cli_paragraph_next(text, word, sizeof word, paragraph, sizeof paragraph)) != NULL) {
    if (word[0] != '\0')
      put_tag(out, word);
    else if (!is_first)
      fputs(".PP\n", out);
    put_words(out, paragraph);
    is_first = false;
  }
}

static void put_option(FILE *out, const cli_option *option) {
  char text[768];
  fputs(".TP\n", out);
  if (option->letter != 0) fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
  fputs("\\fB\\-\\-", out);
  put_text(out, option->name);
  fputs("\\fR", out);
  if (option->value != NULL) {
    bool is_optional = option->kind == CLI_MAYBE_TEXT;
    fputs(is_optional ? "[=\\fI" : " \\fI", out);
    put_text(out, option->value);
    fputs(is_optional ? "\\fR]" : "\\fR", out);
  }
  fputc('\n', out);
  snprintf(text, sizeof text, "%s%s%s%s%s", option->help, option->repeats ? " (repeatable)" : "",
           option->fallback != NULL ? " [default: " : "", option->fallback != NULL ? option->fallback : "",
           option->fallback != NULL ? "]" : "");
  put_words(out, text);
}

/* Command lines, each below its comment. */
static void put_examples(FILE *out, const char *examples) {
  while (*examples != '\0') {
    size_t length = strcspn(examples, "\n");
    char text[512], *comment;
    snprintf(text, sizeof text, "%.*s", (int)length, examples + strspn(examples, " "));
    text[strcspn(text, "\n")] = '\0';
    comment = strstr(text, "  # ");
    if (comment != NULL) *comment = '\0', comment += 4;
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' ';) text[--end] = '\0';
    if (text[0] != '\0') {
      fputs(comment != NULL ? ".TP\n" : ".PP\n", out);
      fputs("\\fB", out);
      put_text(out, text);
      fputs("\\fR\n", out);
      if (comment != NULL) put_words(out, comment);
    }
    examples += length + (examples[length] == '\n');
  }
}

static void put_page_name(const cli_topic *topic, char *name, size_t size_bytes) {
  snprintf(name, size_bytes, "cleave-%s", topic->name);
  for (char *at = name; *at != '\0'; ++at) *at = *at == ' ' ? '-' : *at;
}

/* Whether SEE ALSO of `topic` (NULL: of `cleave`) has the other topic: for a verb, its command and the other verbs. */
static bool is_near(const cli_topic *topic, const cli_topic *other) {
  if (topic == NULL) return other->verb == NULL;
  if (strcmp(topic->name, other->name) == 0) return false;
  if (topic->verb == NULL && other->verb == NULL) return true;
  return topic->command == other->command;
}

static void put_others(FILE *out, const cli_topic *topic) {
  cli_topic other;
  char name[64];
  bool is_first = topic == NULL;
  put_section(out, "SEE ALSO");
  if (topic != NULL) fputs(".BR cleave (1)", out);
  for (uint32_t i = 0; cli_topic_get(i, &other); ++i) {
    if (!is_near(topic, &other)) continue;
    put_page_name(&other, name, sizeof name);
    fputs(is_first ? ".BR " : ",\n.BR ", out);
    put_text(out, name);
    fputs(" (1)", out);
    is_first = false;
  }
  fputc('\n', out);
}

static void put_variables(FILE *out) {
  const char *name, *help, *values;
  put_section(out, "ENVIRONMENT");
  fputs("Options take precedence.\n", out);
  for (uint32_t i = 0; (name = cli_variable(i, &help, &values)) != NULL; ++i) {
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", help, values != NULL ? ": " : "", values != NULL ? values : "");
    put_tag(out, name);
    put_words(out, text[0] != '\0' ? text : "see the documentation");
  }
}

static void put_exit(FILE *out) {
  static const char *const statuses[][2] = {
      {"0", "success"}, {"1", "failure"}, {"2", "wrong usage"}, {"130", "interrupted (Ctrl-C)"}};
  put_section(out, "EXIT STATUS");
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; ++i) {
    put_tag(out, statuses[i][0]);
    put_words(out, statuses[i][1]);
  }
}

/* The list of topics below `command`: its verbs, or all commands if it is NULL. */
static void put_list(FILE *out, const cli_command *command) {
  cli_topic topic;
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) {
    if (command == NULL ? topic.verb != NULL : topic.command != command || topic.verb == NULL) continue;
    char page[64];
    put_page_name(&topic, page, sizeof page);
    fputs(".TP\n.BR ", out);
    put_text(out, page);
    fputs(" (1)\n", out);
    put_words(out, topic.summary);
  }
}

static void put_synopsis(FILE *out, const char *name, const char *operands, const char *wanted) {
  put_section(out, "SYNOPSIS");
  fputs("\\fBcleave ", out);
  put_text(out, name);
  fputs("\\fR", out);
  if (operands[0] != '\0') {
    fputs(" \\fI", out);
    put_text(out, operands);
    fputs("\\fR", out);
  }
  if (wanted[0] != '\0') {
    fputs(" ", out);
    put_text(out, wanted);
  }
  fputs(" [\\fIOPTIONS\\fR]\n", out);
}

static void write_main(FILE *out) {
  put_title(out, "cleave", "run one neural network on all the devices of a machine");
  put_section(out, "SYNOPSIS");
  fputs("\\fBcleave\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...\n.br\n\\fBcleave help\\fR [\\fICOMMAND\\fR]\n.br\n", out);
  fputs("\\fBcleave \\-\\-version\\fR\n", out);
  put_section(out, "DESCRIPTION");
  put_words(out,
            "Loads a model, asks every device which nodes it can run, assigns each node to a device, and runs the parts. Each "
            "command has a page of its own.");
  put_section(out, "COMMANDS");
  put_list(out, NULL);
  put_variables(out);
  put_exit(out);
  put_section(out, "EXAMPLES");
  put_examples(out,
               "cleave devices --devices npu,cpu  # list devices and operators\n"
               "cleave plan model.onnx --devices npu,cpu  # show how a model is split\n"
               "cleave run model.onnx --devices npu,cpu --verify  # run it, and check the results\n");
  put_others(out, NULL);
}

void cli_man_write(const cli_topic *topic, FILE *out) {
  char page[64];
  if (topic == NULL) {
    write_main(out);
    return;
  }
  bool has_strategies = false;
  put_page_name(topic, page, sizeof page);
  put_title(out, page, topic->summary);
  put_synopsis(out, topic->name, topic->operands, topic->wanted);
  put_section(out, "DESCRIPTION");
  put_description(out, topic->description);
  if (topic->command->describe_verb != NULL && topic->verb == NULL) {
    put_section(out, "VERBS");
    put_list(out, topic->command);
  }
  put_section(out, "OPTIONS");
  for (uint32_t i = 0; i < topic->option_count; ++i) {
    put_option(out, &topic->options[i]);
    has_strategies = has_strategies || cli_option_word(&topic->options[i]) == CLI_WORD_STRATEGY;
  }
  if (has_strategies) {
    const char *name, *summary;
    put_section(out, "STRATEGIES");
    for (uint32_t i = 0; (name = cli_strategy(i, &summary)) != NULL; ++i) {
      put_tag(out, name);
      put_words(out, summary);
    }
  }
  put_exit(out);
  put_section(out, "EXAMPLES");
  put_examples(out, topic->examples);
  put_others(out, topic);
}

/* ---- cleave help --man ---- */

clv_status cli_man_print(cli_invocation *cli, const char *command, const char *verb, clv_error *error) {
  cli_topic topic;
  char name[48];
  if (command == NULL) {
    cli_man_write(NULL, stdout);
    return CLV_OK;
  }
  snprintf(name, sizeof name, "%s%s%s", command, verb != NULL ? " " : "", verb != NULL ? verb : "");
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) {
    if (strcmp(topic.name, name) != 0) continue;
    cli_man_write(&topic, stdout);
    return CLV_OK;
  }
  return cli_usage(cli, error, "there is no man page of '%s'; 'cleave --help' lists the commands", name);
}

static clv_status write_page(const char *directory, const char *page, const cli_topic *topic, clv_error *error) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.1", directory, page);
  FILE *out = fopen(path, "w");
  if (out != NULL) cli_man_write(topic, out);
  bool is_written = out != NULL && ferror(out) == 0;
  if (out != NULL && fclose(out) != 0) is_written = false;
  return is_written ? CLV_OK : cli_error_set(error, CLV_IO_ERROR, "%s: cannot write: %s", path, strerror(errno));
}

clv_status cli_man_write_all(cli_invocation *cli, const char *directory, clv_error *error) {
  (void)cli;
  cli_topic topic;
  char page[64];
  if (mkdir(directory, 0777) != 0 && errno != EEXIST)
    return cli_error_set(error, CLV_IO_ERROR, "%s: cannot make the directory: %s", directory, strerror(errno));
  CLI_TRY(write_page(directory, "cleave", NULL, error));
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) {
    put_page_name(&topic, page, sizeof page);
    CLI_TRY(write_page(directory, page, &topic, error));
  }
  return CLV_OK;
}
