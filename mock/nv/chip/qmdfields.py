"""Fields of a QMD that change nothing here, and why; all others that a launch does not look at must be 0.

Names are those of the newest headers; # stands for the numbers of an array, a bank or a release.
"""

from __future__ import annotations

import re
from typing import Final

_WHY: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
  ("no such caches are modelled", (
    "INVALIDATE_TEXTURE_HEADER_CACHE", "INVALIDATE_TEXTURE_SAMPLER_CACHE", "INVALIDATE_TEXTURE_DATA_CACHE",
    "INVALIDATE_INSTRUCTION_CACHE", "DEMOTE_L#_EVICT_LAST", "SM_GLOBAL_CACHING_ENABLE", "DISABLE_AUTO_INVALIDATE")),
  ("what is fetched before it is needed is the same", (
    "CONSTANT_BUFFER_PREFETCH_#", "CONSTANT_BUFFER_PREFETCH_POST_#", "CONSTANT_BUFFER_PREFETCH_PRE_MAX_SIZE_SHIFTED#",
    "CONSTANT_BANK_PREFETCH_PRE_MAX_SIZE_SHIFTED#", "PROGRAM_PREFETCH_SIZE", "PROGRAM_PREFETCH_TYPE",
    "PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED", "PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED", "ICC_PREFETCH_SIZE",
    "DEPENDENT_QMD#_PREFETCH", "DEPENDENT_QMD_PREFETCH_#")),
  ("blocks are placed as they come", (
    "QMD_GROUP_ID", "ADD_TO_HEAD_OF_QMD_GROUP_LINKED_LIST", "FREE_CTA_SLOTS_EMPTY_SM", "SEQUENTIALLY_RUN_CTAS",
    "OCCUPANCY_MAX_REGISTER", "OCCUPANCY_MAX_SHARED_MEM", "OCCUPANCY_MAX_WARP", "OCCUPANCY_THRESHOLD_REGISTER",
    "OCCUPANCY_THRESHOLD_SHARED_MEM", "OCCUPANCY_THRESHOLD_WARP", "SM_DISABLE_MASK_LOWER", "SM_DISABLE_MASK_UPPER",
    "SM_DISABLE_MASK_EXT_LOWER", "SM_DISABLE_MASK_EXT_UPPER", "TPC_DISABLE_MASK_#", "TPC_DISABLE_MASK_UPPER_#",
    "TPC_DISABLE_MASK_VALID", "MIN_SM_CONFIG_SHARED_MEM_SIZE", "MAX_SM_CONFIG_SHARED_MEM_SIZE",
    "TARGET_SM_CONFIG_SHARED_MEM_SIZE", "RUN_CTA_IN_ONE_SM_PARTITION", "CGA_CTA_DISTRIBUTION_MODE",
    "CTA_LAUNCH_QUEUE", "VIRTUAL_RESOURCE_COUNT")),
  ("memory is strong", ("RELEASE_MEMBAR_TYPE", "RELEASE_MEMBAR_TYPE_#", "RELEASE#_MEMBAR_TYPE", "SYNC_DOMAIN_ID")),
  ("PTX says it itself", ("BARRIER_COUNT", "SASS_VERSION", "SHARED_ALLOCATION_ENABLE")),
  ("no textures are modelled", ("SAMPLER_INDEX",)),
  ("names for tools", ("CORRELATION_ID", "CORRELATION_ID_INTERNAL", "DEBUG_ID_LOWER", "DEBUG_ID_UPPER")),
  ("no limit of calls is modelled", ("API_VISIBLE_CALL_LIMIT",)),
)
_BY_NAME: Final = {name: why for why, names in _WHY for name in names}


def why_ignored(field: str) -> str | None:
  """Why a field has no effect here; None for one that would have some."""
  return _BY_NAME.get(re.sub(r"(?a)\d+", "#", field)) or _BY_NAME.get(field)
