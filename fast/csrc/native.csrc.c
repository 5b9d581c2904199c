#include "fucina.h"
