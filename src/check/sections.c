/* The table of sections. To add a section, add a file with one function and a line in sections.h. */
#include "check/sections.h"

const clv__check_section clv__check_sections[] = {
#define ENTRY(name, help) {#name, help, clv__check_##name},
    CLV__CHECK_SECTIONS(ENTRY)
#undef ENTRY
};
const uint32_t clv__check_section_count = sizeof clv__check_sections / sizeof *clv__check_sections;
