/* A fake OpenVINO library for test_openvino.c. It reports a version that is too old to be used. */
typedef struct version {
  const char *build_number, *description;
} version;

int ov_get_openvino_version(version *answer);
void ov_version_free(version *answer);

int ov_get_openvino_version(version *answer) {
  answer->build_number = "2023.3.0-13775-ceeafaf64f3";
  answer->description = "OpenVINO Runtime";
  return 0;
}

void ov_version_free(version *answer) {
  answer->build_number = answer->description = 0;
}
