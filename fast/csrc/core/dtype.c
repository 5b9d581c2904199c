/* What each dtype is: the core's own answer to the predicates and the geometry of chapter dtype. */
#include "core/dtype.h"
#include "core/fault.h"
#include "fucina.h"

static const struct fc_dtype_info dtypes[] = {
#define FC_DTYPE(name, kind, block, bytes, properties, logical, accumulator) \
    {#name, FC_KIND_##kind, block, bytes, properties, FC_##logical, FC_ACCUMULATOR_##accumulator},
#include "core/dtypes.def"
#undef FC_DTYPE
};
_Static_assert(sizeof dtypes / sizeof dtypes[0] == FC_DTYPES, "one record per dtype");
_Static_assert(FC_DTYPES == 40, "the documents list 40 dtypes");

/* Clauses: DTYPE-KIND-1, DTYPE-PRED-1, DTYPE-PRED-2, DTYPE-PRED-3, DTYPE-PRED-4, DTYPE-LOGICAL-1, DTYPE-GEOM-1, DTYPE-GEOM-2,
   DTYPE-GEOM-3, DTYPE-ACC-1, DTYPE-NAME-1 */
fc_status fc_dtype_info(int dtype, struct fc_dtype_info *out) {
    if (dtype < 0 || dtype >= FC_DTYPES) return FC_BAD_DTYPE;
    *out = dtypes[dtype];
    if (FC_PLANTED(F64_WITH_GRADIENT) && dtype == FC_f64) out->properties |= FC_DTYPE_GRAD;
    return FC_OK;
}
