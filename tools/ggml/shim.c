/* What ggml.c wants from the parts of the library that are left out. */
#include <stdlib.h>

void ggml_critical_section_start(void) {
}

void ggml_critical_section_end(void) {
}

void ggml_backend_buffer_get_usage(void) {
    abort();
}

void ggml_backend_tensor_memset(void) {
    abort();
}

void ggml_backend_tensor_set(void) {
    abort();
}
