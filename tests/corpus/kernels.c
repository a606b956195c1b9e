/* C: what kernels.h has. */
#include "kernels.h"
