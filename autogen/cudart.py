"""CUDA's runtime API: enumerations, structs and the signatures of its functions.

Generated; do not edit. Source:
  NVIDIA CUDA Toolkit 13.0 13000, licence NVIDIA CUDA Toolkit EULA; names and numbers only
    include/cuda_runtime_api.h sha256 3f91d3f84f1aafb17cccc475803f9c489b6474f2a3bf0fbc75a5380821c966e0
    include/driver_types.h sha256 0bde4513292bbd80d4fa1d2ee0b605052246d5f128bb08ab69a442b942024517
    include/fatbinary_section.h sha256 367b947f2df9f32189c787a7ab4a419deb63bf5ed459afa73a58184e8522b6bc
    include/crt/host_runtime.h sha256 4a2fb43bf85dff114387d78fbde4c16f02ab77c3936ec0606f380f2933f54604
    include/crt/device_functions.h sha256 7c9da9b4543530e899444ec0281faae67ad9773ef5243ac1809e1794af9f55ce
Generator: tinyhw gen cudart

FUNCTIONS has a function's parameters as ctypes has them. Pointers and handles are addresses. BY_VALUE are the
functions that take a struct by value that is not here, whose parameters are not told. PER_THREAD has the names under
which programs of --default-stream per-thread call functions.
"""
from __future__ import annotations

import ctypes
from ctypes import c_char, c_float, c_int32, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

from tinyhw.core.layout import Struct, Union

FATBINC_MAGIC = 0x466243b1
FATBINC_VERSION = 1
FATBINC_LINK_VERSION = 2
cudaSuccess = 0
cudaErrorInvalidValue = 1
cudaErrorMemoryAllocation = 2
cudaErrorInitializationError = 3
cudaErrorCudartUnloading = 4
cudaErrorProfilerDisabled = 5
cudaErrorProfilerNotInitialized = 6
cudaErrorProfilerAlreadyStarted = 7
cudaErrorProfilerAlreadyStopped = 8
cudaErrorInvalidConfiguration = 9
cudaErrorInvalidPitchValue = 0xc
cudaErrorInvalidSymbol = 0xd
cudaErrorInvalidHostPointer = 0x10
cudaErrorInvalidDevicePointer = 0x11
cudaErrorInvalidTexture = 0x12
cudaErrorInvalidTextureBinding = 0x13
cudaErrorInvalidChannelDescriptor = 0x14
cudaErrorInvalidMemcpyDirection = 0x15
cudaErrorAddressOfConstant = 0x16
cudaErrorTextureFetchFailed = 0x17
cudaErrorTextureNotBound = 0x18
cudaErrorSynchronizationError = 0x19
cudaErrorInvalidFilterSetting = 0x1a
cudaErrorInvalidNormSetting = 0x1b
cudaErrorMixedDeviceExecution = 0x1c
cudaErrorNotYetImplemented = 0x1f
cudaErrorMemoryValueTooLarge = 0x20
cudaErrorStubLibrary = 0x22
cudaErrorInsufficientDriver = 0x23
cudaErrorCallRequiresNewerDriver = 0x24
cudaErrorInvalidSurface = 0x25
cudaErrorDuplicateVariableName = 0x2b
cudaErrorDuplicateTextureName = 0x2c
cudaErrorDuplicateSurfaceName = 0x2d
cudaErrorDevicesUnavailable = 0x2e
cudaErrorIncompatibleDriverContext = 0x31
cudaErrorMissingConfiguration = 0x34
cudaErrorPriorLaunchFailure = 0x35
cudaErrorLaunchMaxDepthExceeded = 0x41
cudaErrorLaunchFileScopedTex = 0x42
cudaErrorLaunchFileScopedSurf = 0x43
cudaErrorSyncDepthExceeded = 0x44
cudaErrorLaunchPendingCountExceeded = 0x45
cudaErrorInvalidDeviceFunction = 0x62
cudaErrorNoDevice = 0x64
cudaErrorInvalidDevice = 0x65
cudaErrorDeviceNotLicensed = 0x66
cudaErrorSoftwareValidityNotEstablished = 0x67
cudaErrorStartupFailure = 0x7f
cudaErrorInvalidKernelImage = 0xc8
cudaErrorDeviceUninitialized = 0xc9
cudaErrorMapBufferObjectFailed = 0xcd
cudaErrorUnmapBufferObjectFailed = 0xce
cudaErrorArrayIsMapped = 0xcf
cudaErrorAlreadyMapped = 0xd0
cudaErrorNoKernelImageForDevice = 0xd1
cudaErrorAlreadyAcquired = 0xd2
cudaErrorNotMapped = 0xd3
cudaErrorNotMappedAsArray = 0xd4
cudaErrorNotMappedAsPointer = 0xd5
cudaErrorECCUncorrectable = 0xd6
cudaErrorUnsupportedLimit = 0xd7
cudaErrorDeviceAlreadyInUse = 0xd8
cudaErrorPeerAccessUnsupported = 0xd9
cudaErrorInvalidPtx = 0xda
cudaErrorInvalidGraphicsContext = 0xdb
cudaErrorNvlinkUncorrectable = 0xdc
cudaErrorJitCompilerNotFound = 0xdd
cudaErrorUnsupportedPtxVersion = 0xde
cudaErrorJitCompilationDisabled = 0xdf
cudaErrorUnsupportedExecAffinity = 0xe0
cudaErrorUnsupportedDevSideSync = 0xe1
cudaErrorContained = 0xe2
cudaErrorInvalidSource = 0x12c
cudaErrorFileNotFound = 0x12d
cudaErrorSharedObjectSymbolNotFound = 0x12e
cudaErrorSharedObjectInitFailed = 0x12f
cudaErrorOperatingSystem = 0x130
cudaErrorInvalidResourceHandle = 0x190
cudaErrorIllegalState = 0x191
cudaErrorLossyQuery = 0x192
cudaErrorSymbolNotFound = 0x1f4
cudaErrorNotReady = 0x258
cudaErrorIllegalAddress = 0x2bc
cudaErrorLaunchOutOfResources = 0x2bd
cudaErrorLaunchTimeout = 0x2be
cudaErrorLaunchIncompatibleTexturing = 0x2bf
cudaErrorPeerAccessAlreadyEnabled = 0x2c0
cudaErrorPeerAccessNotEnabled = 0x2c1
cudaErrorSetOnActiveProcess = 0x2c4
cudaErrorContextIsDestroyed = 0x2c5
cudaErrorAssert = 0x2c6
cudaErrorTooManyPeers = 0x2c7
cudaErrorHostMemoryAlreadyRegistered = 0x2c8
cudaErrorHostMemoryNotRegistered = 0x2c9
cudaErrorHardwareStackError = 0x2ca
cudaErrorIllegalInstruction = 0x2cb
cudaErrorMisalignedAddress = 0x2cc
cudaErrorInvalidAddressSpace = 0x2cd
cudaErrorInvalidPc = 0x2ce
cudaErrorLaunchFailure = 0x2cf
cudaErrorCooperativeLaunchTooLarge = 0x2d0
cudaErrorTensorMemoryLeak = 0x2d1
cudaErrorNotPermitted = 0x320
cudaErrorNotSupported = 0x321
cudaErrorSystemNotReady = 0x322
cudaErrorSystemDriverMismatch = 0x323
cudaErrorCompatNotSupportedOnDevice = 0x324
cudaErrorMpsConnectionFailed = 0x325
cudaErrorMpsRpcFailure = 0x326
cudaErrorMpsServerNotReady = 0x327
cudaErrorMpsMaxClientsReached = 0x328
cudaErrorMpsMaxConnectionsReached = 0x329
cudaErrorMpsClientTerminated = 0x32a
cudaErrorCdpNotSupported = 0x32b
cudaErrorCdpVersionMismatch = 0x32c
cudaErrorStreamCaptureUnsupported = 0x384
cudaErrorStreamCaptureInvalidated = 0x385
cudaErrorStreamCaptureMerge = 0x386
cudaErrorStreamCaptureUnmatched = 0x387
cudaErrorStreamCaptureUnjoined = 0x388
cudaErrorStreamCaptureIsolation = 0x389
cudaErrorStreamCaptureImplicit = 0x38a
cudaErrorCapturedEvent = 0x38b
cudaErrorStreamCaptureWrongThread = 0x38c
cudaErrorTimeout = 0x38d
cudaErrorGraphExecUpdateFailure = 0x38e
cudaErrorExternalDevice = 0x38f
cudaErrorInvalidClusterSize = 0x390
cudaErrorFunctionNotLoaded = 0x391
cudaErrorInvalidResourceType = 0x392
cudaErrorInvalidResourceConfiguration = 0x393
cudaErrorUnknown = 0x3e7
cudaErrorApiFailureBase = 0x2710
cudaMemcpyHostToHost = 0
cudaMemcpyHostToDevice = 1
cudaMemcpyDeviceToHost = 2
cudaMemcpyDeviceToDevice = 3
cudaMemcpyDefault = 4
cudaFuncAttributeMaxDynamicSharedMemorySize = 8
cudaFuncAttributePreferredSharedMemoryCarveout = 9
cudaFuncAttributeClusterDimMustBeSet = 0xa
cudaFuncAttributeRequiredClusterWidth = 0xb
cudaFuncAttributeRequiredClusterHeight = 0xc
cudaFuncAttributeRequiredClusterDepth = 0xd
cudaFuncAttributeNonPortableClusterSizeAllowed = 0xe
cudaFuncAttributeClusterSchedulingPolicyPreference = 0xf
cudaFuncAttributeMax = 0x10
cudaDriverEntryPointSuccess = 0
cudaDriverEntryPointSymbolNotFound = 1
cudaDriverEntryPointVersionNotSufficent = 2
cudaMemoryTypeUnregistered = 0
cudaMemoryTypeHost = 1
cudaMemoryTypeDevice = 2
cudaMemoryTypeManaged = 3
cudaChannelFormatKindSigned = 0
cudaChannelFormatKindUnsigned = 1
cudaChannelFormatKindFloat = 2
cudaChannelFormatKindNone = 3
cudaChannelFormatKindNV12 = 4
cudaChannelFormatKindUnsignedNormalized8X1 = 5
cudaChannelFormatKindUnsignedNormalized8X2 = 6
cudaChannelFormatKindUnsignedNormalized8X4 = 7
cudaChannelFormatKindUnsignedNormalized16X1 = 8
cudaChannelFormatKindUnsignedNormalized16X2 = 9
cudaChannelFormatKindUnsignedNormalized16X4 = 0xa
cudaChannelFormatKindSignedNormalized8X1 = 0xb
cudaChannelFormatKindSignedNormalized8X2 = 0xc
cudaChannelFormatKindSignedNormalized8X4 = 0xd
cudaChannelFormatKindSignedNormalized16X1 = 0xe
cudaChannelFormatKindSignedNormalized16X2 = 0xf
cudaChannelFormatKindSignedNormalized16X4 = 0x10
cudaChannelFormatKindUnsignedBlockCompressed1 = 0x11
cudaChannelFormatKindUnsignedBlockCompressed1SRGB = 0x12
cudaChannelFormatKindUnsignedBlockCompressed2 = 0x13
cudaChannelFormatKindUnsignedBlockCompressed2SRGB = 0x14
cudaChannelFormatKindUnsignedBlockCompressed3 = 0x15
cudaChannelFormatKindUnsignedBlockCompressed3SRGB = 0x16
cudaChannelFormatKindUnsignedBlockCompressed4 = 0x17
cudaChannelFormatKindSignedBlockCompressed4 = 0x18
cudaChannelFormatKindUnsignedBlockCompressed5 = 0x19
cudaChannelFormatKindSignedBlockCompressed5 = 0x1a
cudaChannelFormatKindUnsignedBlockCompressed6H = 0x1b
cudaChannelFormatKindSignedBlockCompressed6H = 0x1c
cudaChannelFormatKindUnsignedBlockCompressed7 = 0x1d
cudaChannelFormatKindUnsignedBlockCompressed7SRGB = 0x1e
cudaChannelFormatKindUnsignedNormalized1010102 = 0x1f
cudaResourceTypeArray = 0
cudaResourceTypeMipmappedArray = 1
cudaResourceTypeLinear = 2
cudaResourceTypePitch2D = 3
cudaAddressModeWrap = 0
cudaAddressModeClamp = 1
cudaAddressModeMirror = 2
cudaAddressModeBorder = 3
cudaFilterModePoint = 0
cudaFilterModeLinear = 1
cudaReadModeElementType = 0
cudaReadModeNormalizedFloat = 1
cudaGraphNodeTypeKernel = 0
cudaGraphNodeTypeMemcpy = 1
cudaGraphNodeTypeMemset = 2
cudaGraphNodeTypeHost = 3
cudaGraphNodeTypeGraph = 4
cudaGraphNodeTypeEmpty = 5
cudaGraphNodeTypeWaitEvent = 6
cudaGraphNodeTypeEventRecord = 7
cudaGraphNodeTypeExtSemaphoreSignal = 8
cudaGraphNodeTypeExtSemaphoreWait = 9
cudaGraphNodeTypeMemAlloc = 0xa
cudaGraphNodeTypeMemFree = 0xb
cudaGraphNodeTypeConditional = 0xd
cudaGraphNodeTypeCount = 0xe

ERRORS = {
  0: "cudaSuccess",
  1: "cudaErrorInvalidValue",
  2: "cudaErrorMemoryAllocation",
  3: "cudaErrorInitializationError",
  4: "cudaErrorCudartUnloading",
  5: "cudaErrorProfilerDisabled",
  6: "cudaErrorProfilerNotInitialized",
  7: "cudaErrorProfilerAlreadyStarted",
  8: "cudaErrorProfilerAlreadyStopped",
  9: "cudaErrorInvalidConfiguration",
  12: "cudaErrorInvalidPitchValue",
  13: "cudaErrorInvalidSymbol",
  16: "cudaErrorInvalidHostPointer",
  17: "cudaErrorInvalidDevicePointer",
  18: "cudaErrorInvalidTexture",
  19: "cudaErrorInvalidTextureBinding",
  20: "cudaErrorInvalidChannelDescriptor",
  21: "cudaErrorInvalidMemcpyDirection",
  22: "cudaErrorAddressOfConstant",
  23: "cudaErrorTextureFetchFailed",
  24: "cudaErrorTextureNotBound",
  25: "cudaErrorSynchronizationError",
  26: "cudaErrorInvalidFilterSetting",
  27: "cudaErrorInvalidNormSetting",
  28: "cudaErrorMixedDeviceExecution",
  31: "cudaErrorNotYetImplemented",
  32: "cudaErrorMemoryValueTooLarge",
  34: "cudaErrorStubLibrary",
  35: "cudaErrorInsufficientDriver",
  36: "cudaErrorCallRequiresNewerDriver",
  37: "cudaErrorInvalidSurface",
  43: "cudaErrorDuplicateVariableName",
  44: "cudaErrorDuplicateTextureName",
  45: "cudaErrorDuplicateSurfaceName",
  46: "cudaErrorDevicesUnavailable",
  49: "cudaErrorIncompatibleDriverContext",
  52: "cudaErrorMissingConfiguration",
  53: "cudaErrorPriorLaunchFailure",
  65: "cudaErrorLaunchMaxDepthExceeded",
  66: "cudaErrorLaunchFileScopedTex",
  67: "cudaErrorLaunchFileScopedSurf",
  68: "cudaErrorSyncDepthExceeded",
  69: "cudaErrorLaunchPendingCountExceeded",
  98: "cudaErrorInvalidDeviceFunction",
  100: "cudaErrorNoDevice",
  101: "cudaErrorInvalidDevice",
  102: "cudaErrorDeviceNotLicensed",
  103: "cudaErrorSoftwareValidityNotEstablished",
  127: "cudaErrorStartupFailure",
  200: "cudaErrorInvalidKernelImage",
  201: "cudaErrorDeviceUninitialized",
  205: "cudaErrorMapBufferObjectFailed",
  206: "cudaErrorUnmapBufferObjectFailed",
  207: "cudaErrorArrayIsMapped",
  208: "cudaErrorAlreadyMapped",
  209: "cudaErrorNoKernelImageForDevice",
  210: "cudaErrorAlreadyAcquired",
  211: "cudaErrorNotMapped",
  212: "cudaErrorNotMappedAsArray",
  213: "cudaErrorNotMappedAsPointer",
  214: "cudaErrorECCUncorrectable",
  215: "cudaErrorUnsupportedLimit",
  216: "cudaErrorDeviceAlreadyInUse",
  217: "cudaErrorPeerAccessUnsupported",
  218: "cudaErrorInvalidPtx",
  219: "cudaErrorInvalidGraphicsContext",
  220: "cudaErrorNvlinkUncorrectable",
  221: "cudaErrorJitCompilerNotFound",
  222: "cudaErrorUnsupportedPtxVersion",
  223: "cudaErrorJitCompilationDisabled",
  224: "cudaErrorUnsupportedExecAffinity",
  225: "cudaErrorUnsupportedDevSideSync",
  226: "cudaErrorContained",
  300: "cudaErrorInvalidSource",
  301: "cudaErrorFileNotFound",
  302: "cudaErrorSharedObjectSymbolNotFound",
  303: "cudaErrorSharedObjectInitFailed",
  304: "cudaErrorOperatingSystem",
  400: "cudaErrorInvalidResourceHandle",
  401: "cudaErrorIllegalState",
  402: "cudaErrorLossyQuery",
  500: "cudaErrorSymbolNotFound",
  600: "cudaErrorNotReady",
  700: "cudaErrorIllegalAddress",
  701: "cudaErrorLaunchOutOfResources",
  702: "cudaErrorLaunchTimeout",
  703: "cudaErrorLaunchIncompatibleTexturing",
  704: "cudaErrorPeerAccessAlreadyEnabled",
  705: "cudaErrorPeerAccessNotEnabled",
  708: "cudaErrorSetOnActiveProcess",
  709: "cudaErrorContextIsDestroyed",
  710: "cudaErrorAssert",
  711: "cudaErrorTooManyPeers",
  712: "cudaErrorHostMemoryAlreadyRegistered",
  713: "cudaErrorHostMemoryNotRegistered",
  714: "cudaErrorHardwareStackError",
  715: "cudaErrorIllegalInstruction",
  716: "cudaErrorMisalignedAddress",
  717: "cudaErrorInvalidAddressSpace",
  718: "cudaErrorInvalidPc",
  719: "cudaErrorLaunchFailure",
  720: "cudaErrorCooperativeLaunchTooLarge",
  721: "cudaErrorTensorMemoryLeak",
  800: "cudaErrorNotPermitted",
  801: "cudaErrorNotSupported",
  802: "cudaErrorSystemNotReady",
  803: "cudaErrorSystemDriverMismatch",
  804: "cudaErrorCompatNotSupportedOnDevice",
  805: "cudaErrorMpsConnectionFailed",
  806: "cudaErrorMpsRpcFailure",
  807: "cudaErrorMpsServerNotReady",
  808: "cudaErrorMpsMaxClientsReached",
  809: "cudaErrorMpsMaxConnectionsReached",
  810: "cudaErrorMpsClientTerminated",
  811: "cudaErrorCdpNotSupported",
  812: "cudaErrorCdpVersionMismatch",
  900: "cudaErrorStreamCaptureUnsupported",
  901: "cudaErrorStreamCaptureInvalidated",
  902: "cudaErrorStreamCaptureMerge",
  903: "cudaErrorStreamCaptureUnmatched",
  904: "cudaErrorStreamCaptureUnjoined",
  905: "cudaErrorStreamCaptureIsolation",
  906: "cudaErrorStreamCaptureImplicit",
  907: "cudaErrorCapturedEvent",
  908: "cudaErrorStreamCaptureWrongThread",
  909: "cudaErrorTimeout",
  910: "cudaErrorGraphExecUpdateFailure",
  911: "cudaErrorExternalDevice",
  912: "cudaErrorInvalidClusterSize",
  913: "cudaErrorFunctionNotLoaded",
  914: "cudaErrorInvalidResourceType",
  915: "cudaErrorInvalidResourceConfiguration",
  999: "cudaErrorUnknown",
  10000: "cudaErrorApiFailureBase",
}

class dim3(Struct):
  """12 bytes."""
  x: int
  y: int
  z: int
  _fields_ = [
    ("x", ctypes.c_uint32),
    ("y", ctypes.c_uint32),
    ("z", ctypes.c_uint32),
  ]


class cudaChannelFormatDesc(Struct):
  """20 bytes."""
  x: int
  y: int
  z: int
  w: int
  f: int
  _fields_ = [
    ("x", ctypes.c_int32),
    ("y", ctypes.c_int32),
    ("z", ctypes.c_int32),
    ("w", ctypes.c_int32),
    ("f", ctypes.c_uint32),
  ]


class cudaPitchedPtr(Struct):
  """32 bytes."""
  ptr: int
  pitch: int
  xsize: int
  ysize: int
  _fields_ = [
    ("ptr", ctypes.c_uint64),
    ("pitch", ctypes.c_uint64),
    ("xsize", ctypes.c_uint64),
    ("ysize", ctypes.c_uint64),
  ]


class cudaExtent(Struct):
  """24 bytes."""
  width: int
  height: int
  depth: int
  _fields_ = [
    ("width", ctypes.c_uint64),
    ("height", ctypes.c_uint64),
    ("depth", ctypes.c_uint64),
  ]


class cudaPos(Struct):
  """24 bytes."""
  x: int
  y: int
  z: int
  _fields_ = [
    ("x", ctypes.c_uint64),
    ("y", ctypes.c_uint64),
    ("z", ctypes.c_uint64),
  ]


class cudaMemcpy3DParms(Struct):
  """160 bytes."""
  srcArray: int
  srcPos: cudaPos
  srcPtr: cudaPitchedPtr
  dstArray: int
  dstPos: cudaPos
  dstPtr: cudaPitchedPtr
  extent: cudaExtent
  kind: int
  _fields_ = [
    ("srcArray", ctypes.c_uint64),
    ("srcPos", cudaPos),
    ("srcPtr", cudaPitchedPtr),
    ("dstArray", ctypes.c_uint64),
    ("dstPos", cudaPos),
    ("dstPtr", cudaPitchedPtr),
    ("extent", cudaExtent),
    ("kind", ctypes.c_uint32),
  ]


class cudaMemcpyNodeParams(Struct):
  """176 bytes."""
  flags: int
  reserved: ctypes.Array[ctypes.c_int32]
  copyParams: cudaMemcpy3DParms
  _fields_ = [
    ("flags", ctypes.c_int32),
    ("reserved", ctypes.c_int32 * 3),
    ("copyParams", cudaMemcpy3DParms),
  ]


class cudaMemcpy3DPeerParms(Struct):
  """168 bytes."""
  srcArray: int
  srcPos: cudaPos
  srcPtr: cudaPitchedPtr
  srcDevice: int
  dstArray: int
  dstPos: cudaPos
  dstPtr: cudaPitchedPtr
  dstDevice: int
  extent: cudaExtent
  _fields_ = [
    ("srcArray", ctypes.c_uint64),
    ("srcPos", cudaPos),
    ("srcPtr", cudaPitchedPtr),
    ("srcDevice", ctypes.c_int32),
    ("dstArray", ctypes.c_uint64),
    ("dstPos", cudaPos),
    ("dstPtr", cudaPitchedPtr),
    ("dstDevice", ctypes.c_int32),
    ("extent", cudaExtent),
  ]


class cudaMemsetParams(Struct):
  """40 bytes."""
  dst: int
  pitch: int
  value: int
  elementSize: int
  width: int
  height: int
  _fields_ = [
    ("dst", ctypes.c_uint64),
    ("pitch", ctypes.c_uint64),
    ("value", ctypes.c_uint32),
    ("elementSize", ctypes.c_uint32),
    ("width", ctypes.c_uint64),
    ("height", ctypes.c_uint64),
  ]


class cudaMemsetParamsV2(Struct):
  """40 bytes."""
  dst: int
  pitch: int
  value: int
  elementSize: int
  width: int
  height: int
  _fields_ = [
    ("dst", ctypes.c_uint64),
    ("pitch", ctypes.c_uint64),
    ("value", ctypes.c_uint32),
    ("elementSize", ctypes.c_uint32),
    ("width", ctypes.c_uint64),
    ("height", ctypes.c_uint64),
  ]


class cudaHostNodeParams(Struct):
  """16 bytes."""
  fn: int
  userData: int
  _fields_ = [
    ("fn", ctypes.c_uint64),
    ("userData", ctypes.c_uint64),
  ]


class cudaHostNodeParamsV2(Struct):
  """16 bytes."""
  fn: int
  userData: int
  _fields_ = [
    ("fn", ctypes.c_uint64),
    ("userData", ctypes.c_uint64),
  ]


class cudaResourceDesc_0_array(Struct):
  """8 bytes."""
  array: int
  _fields_ = [
    ("array", ctypes.c_uint64),
  ]


class cudaResourceDesc_0_mipmap(Struct):
  """8 bytes."""
  mipmap: int
  _fields_ = [
    ("mipmap", ctypes.c_uint64),
  ]


class cudaResourceDesc_0_linear(Struct):
  """40 bytes."""
  devPtr: int
  desc: cudaChannelFormatDesc
  sizeInBytes: int
  _fields_ = [
    ("devPtr", ctypes.c_uint64),
    ("desc", cudaChannelFormatDesc),
    ("sizeInBytes", ctypes.c_uint64),
  ]


class cudaResourceDesc_0_pitch2D(Struct):
  """56 bytes."""
  devPtr: int
  desc: cudaChannelFormatDesc
  width: int
  height: int
  pitchInBytes: int
  _fields_ = [
    ("devPtr", ctypes.c_uint64),
    ("desc", cudaChannelFormatDesc),
    ("width", ctypes.c_uint64),
    ("height", ctypes.c_uint64),
    ("pitchInBytes", ctypes.c_uint64),
  ]


class cudaResourceDesc_0_reserved(Struct):
  """128 bytes."""
  reserved: ctypes.Array[ctypes.c_int32]
  _fields_ = [
    ("reserved", ctypes.c_int32 * 32),
  ]


class cudaResourceDesc_res(Union):
  """128 bytes."""
  array: cudaResourceDesc_0_array
  mipmap: cudaResourceDesc_0_mipmap
  linear: cudaResourceDesc_0_linear
  pitch2D: cudaResourceDesc_0_pitch2D
  reserved: cudaResourceDesc_0_reserved
  _fields_ = [
    ("array", cudaResourceDesc_0_array),
    ("mipmap", cudaResourceDesc_0_mipmap),
    ("linear", cudaResourceDesc_0_linear),
    ("pitch2D", cudaResourceDesc_0_pitch2D),
    ("reserved", cudaResourceDesc_0_reserved),
  ]


class cudaResourceDesc(Struct):
  """144 bytes."""
  resType: int
  res: cudaResourceDesc_res
  flags: int
  _fields_ = [
    ("resType", ctypes.c_uint32),
    ("res", cudaResourceDesc_res),
    ("flags", ctypes.c_uint32),
  ]


class cudaResourceViewDesc(Struct):
  """112 bytes."""
  format: int
  width: int
  height: int
  depth: int
  firstMipmapLevel: int
  lastMipmapLevel: int
  firstLayer: int
  lastLayer: int
  reserved: ctypes.Array[ctypes.c_uint32]
  _fields_ = [
    ("format", ctypes.c_uint32),
    ("width", ctypes.c_uint64),
    ("height", ctypes.c_uint64),
    ("depth", ctypes.c_uint64),
    ("firstMipmapLevel", ctypes.c_uint32),
    ("lastMipmapLevel", ctypes.c_uint32),
    ("firstLayer", ctypes.c_uint32),
    ("lastLayer", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32 * 16),
  ]


class cudaPointerAttributes(Struct):
  """88 bytes."""
  type: int
  device: int
  devicePointer: int
  hostPointer: int
  reserved: ctypes.Array[ctypes.c_int64]
  _fields_ = [
    ("type", ctypes.c_uint32),
    ("device", ctypes.c_int32),
    ("devicePointer", ctypes.c_uint64),
    ("hostPointer", ctypes.c_uint64),
    ("reserved", ctypes.c_int64 * 8),
  ]


class cudaFuncAttributes(Struct):
  """144 bytes."""
  sharedSizeBytes: int
  constSizeBytes: int
  localSizeBytes: int
  maxThreadsPerBlock: int
  numRegs: int
  ptxVersion: int
  binaryVersion: int
  cacheModeCA: int
  maxDynamicSharedSizeBytes: int
  preferredShmemCarveout: int
  clusterDimMustBeSet: int
  requiredClusterWidth: int
  requiredClusterHeight: int
  requiredClusterDepth: int
  clusterSchedulingPolicyPreference: int
  nonPortableClusterSizeAllowed: int
  reserved: ctypes.Array[ctypes.c_int32]
  _fields_ = [
    ("sharedSizeBytes", ctypes.c_uint64),
    ("constSizeBytes", ctypes.c_uint64),
    ("localSizeBytes", ctypes.c_uint64),
    ("maxThreadsPerBlock", ctypes.c_int32),
    ("numRegs", ctypes.c_int32),
    ("ptxVersion", ctypes.c_int32),
    ("binaryVersion", ctypes.c_int32),
    ("cacheModeCA", ctypes.c_int32),
    ("maxDynamicSharedSizeBytes", ctypes.c_int32),
    ("preferredShmemCarveout", ctypes.c_int32),
    ("clusterDimMustBeSet", ctypes.c_int32),
    ("requiredClusterWidth", ctypes.c_int32),
    ("requiredClusterHeight", ctypes.c_int32),
    ("requiredClusterDepth", ctypes.c_int32),
    ("clusterSchedulingPolicyPreference", ctypes.c_int32),
    ("nonPortableClusterSizeAllowed", ctypes.c_int32),
    ("reserved", ctypes.c_int32 * 16),
  ]


class cudaMemLocation(Struct):
  """8 bytes."""
  type: int
  id: int
  _fields_ = [
    ("type", ctypes.c_uint32),
    ("id", ctypes.c_int32),
  ]


class cudaMemPoolProps(Struct):
  """88 bytes."""
  allocType: int
  handleTypes: int
  location: cudaMemLocation
  win32SecurityAttributes: int
  maxSize: int
  usage: int
  reserved: ctypes.Array[ctypes.c_uint8]
  _fields_ = [
    ("allocType", ctypes.c_uint32),
    ("handleTypes", ctypes.c_uint32),
    ("location", cudaMemLocation),
    ("win32SecurityAttributes", ctypes.c_uint64),
    ("maxSize", ctypes.c_uint64),
    ("usage", ctypes.c_uint16),
    ("reserved", ctypes.c_uint8 * 54),
  ]


class cudaMemAllocNodeParamsV2(Struct):
  """120 bytes."""
  poolProps: cudaMemPoolProps
  accessDescs: int
  accessDescCount: int
  bytesize: int
  dptr: int
  _fields_ = [
    ("poolProps", cudaMemPoolProps),
    ("accessDescs", ctypes.c_uint64),
    ("accessDescCount", ctypes.c_uint64),
    ("bytesize", ctypes.c_uint64),
    ("dptr", ctypes.c_uint64),
  ]


class cudaMemFreeNodeParams(Struct):
  """8 bytes."""
  dptr: int
  _fields_ = [
    ("dptr", ctypes.c_uint64),
  ]


class cudaUUID_t(Struct):
  """16 bytes."""
  bytes: bytes
  _fields_ = [
    ("bytes", ctypes.c_char * 16),
  ]


class cudaDeviceProp(Struct):
  """1008 bytes."""
  name: bytes
  uuid: cudaUUID_t
  luid: bytes
  luidDeviceNodeMask: int
  totalGlobalMem: int
  sharedMemPerBlock: int
  regsPerBlock: int
  warpSize: int
  memPitch: int
  maxThreadsPerBlock: int
  maxThreadsDim: ctypes.Array[ctypes.c_int32]
  maxGridSize: ctypes.Array[ctypes.c_int32]
  totalConstMem: int
  major: int
  minor: int
  textureAlignment: int
  texturePitchAlignment: int
  multiProcessorCount: int
  integrated: int
  canMapHostMemory: int
  maxTexture1D: int
  maxTexture1DMipmap: int
  maxTexture2D: ctypes.Array[ctypes.c_int32]
  maxTexture2DMipmap: ctypes.Array[ctypes.c_int32]
  maxTexture2DLinear: ctypes.Array[ctypes.c_int32]
  maxTexture2DGather: ctypes.Array[ctypes.c_int32]
  maxTexture3D: ctypes.Array[ctypes.c_int32]
  maxTexture3DAlt: ctypes.Array[ctypes.c_int32]
  maxTextureCubemap: int
  maxTexture1DLayered: ctypes.Array[ctypes.c_int32]
  maxTexture2DLayered: ctypes.Array[ctypes.c_int32]
  maxTextureCubemapLayered: ctypes.Array[ctypes.c_int32]
  maxSurface1D: int
  maxSurface2D: ctypes.Array[ctypes.c_int32]
  maxSurface3D: ctypes.Array[ctypes.c_int32]
  maxSurface1DLayered: ctypes.Array[ctypes.c_int32]
  maxSurface2DLayered: ctypes.Array[ctypes.c_int32]
  maxSurfaceCubemap: int
  maxSurfaceCubemapLayered: ctypes.Array[ctypes.c_int32]
  surfaceAlignment: int
  concurrentKernels: int
  ECCEnabled: int
  pciBusID: int
  pciDeviceID: int
  pciDomainID: int
  tccDriver: int
  asyncEngineCount: int
  unifiedAddressing: int
  memoryBusWidth: int
  l2CacheSize: int
  persistingL2CacheMaxSize: int
  maxThreadsPerMultiProcessor: int
  streamPrioritiesSupported: int
  globalL1CacheSupported: int
  localL1CacheSupported: int
  sharedMemPerMultiprocessor: int
  regsPerMultiprocessor: int
  managedMemory: int
  isMultiGpuBoard: int
  multiGpuBoardGroupID: int
  hostNativeAtomicSupported: int
  pageableMemoryAccess: int
  concurrentManagedAccess: int
  computePreemptionSupported: int
  canUseHostPointerForRegisteredMem: int
  cooperativeLaunch: int
  sharedMemPerBlockOptin: int
  pageableMemoryAccessUsesHostPageTables: int
  directManagedMemAccessFromHost: int
  maxBlocksPerMultiProcessor: int
  accessPolicyMaxWindowSize: int
  reservedSharedMemPerBlock: int
  hostRegisterSupported: int
  sparseCudaArraySupported: int
  hostRegisterReadOnlySupported: int
  timelineSemaphoreInteropSupported: int
  memoryPoolsSupported: int
  gpuDirectRDMASupported: int
  gpuDirectRDMAFlushWritesOptions: int
  gpuDirectRDMAWritesOrdering: int
  memoryPoolSupportedHandleTypes: int
  deferredMappingCudaArraySupported: int
  ipcEventSupported: int
  clusterLaunch: int
  unifiedFunctionPointers: int
  deviceNumaConfig: int
  deviceNumaId: int
  mpsEnabled: int
  hostNumaId: int
  gpuPciDeviceID: int
  gpuPciSubsystemID: int
  hostNumaMultinodeIpcSupported: int
  reserved: ctypes.Array[ctypes.c_int32]
  _fields_ = [
    ("name", ctypes.c_char * 256),
    ("uuid", cudaUUID_t),
    ("luid", ctypes.c_char * 8),
    ("luidDeviceNodeMask", ctypes.c_uint32),
    ("totalGlobalMem", ctypes.c_uint64),
    ("sharedMemPerBlock", ctypes.c_uint64),
    ("regsPerBlock", ctypes.c_int32),
    ("warpSize", ctypes.c_int32),
    ("memPitch", ctypes.c_uint64),
    ("maxThreadsPerBlock", ctypes.c_int32),
    ("maxThreadsDim", ctypes.c_int32 * 3),
    ("maxGridSize", ctypes.c_int32 * 3),
    ("totalConstMem", ctypes.c_uint64),
    ("major", ctypes.c_int32),
    ("minor", ctypes.c_int32),
    ("textureAlignment", ctypes.c_uint64),
    ("texturePitchAlignment", ctypes.c_uint64),
    ("multiProcessorCount", ctypes.c_int32),
    ("integrated", ctypes.c_int32),
    ("canMapHostMemory", ctypes.c_int32),
    ("maxTexture1D", ctypes.c_int32),
    ("maxTexture1DMipmap", ctypes.c_int32),
    ("maxTexture2D", ctypes.c_int32 * 2),
    ("maxTexture2DMipmap", ctypes.c_int32 * 2),
    ("maxTexture2DLinear", ctypes.c_int32 * 3),
    ("maxTexture2DGather", ctypes.c_int32 * 2),
    ("maxTexture3D", ctypes.c_int32 * 3),
    ("maxTexture3DAlt", ctypes.c_int32 * 3),
    ("maxTextureCubemap", ctypes.c_int32),
    ("maxTexture1DLayered", ctypes.c_int32 * 2),
    ("maxTexture2DLayered", ctypes.c_int32 * 3),
    ("maxTextureCubemapLayered", ctypes.c_int32 * 2),
    ("maxSurface1D", ctypes.c_int32),
    ("maxSurface2D", ctypes.c_int32 * 2),
    ("maxSurface3D", ctypes.c_int32 * 3),
    ("maxSurface1DLayered", ctypes.c_int32 * 2),
    ("maxSurface2DLayered", ctypes.c_int32 * 3),
    ("maxSurfaceCubemap", ctypes.c_int32),
    ("maxSurfaceCubemapLayered", ctypes.c_int32 * 2),
    ("surfaceAlignment", ctypes.c_uint64),
    ("concurrentKernels", ctypes.c_int32),
    ("ECCEnabled", ctypes.c_int32),
    ("pciBusID", ctypes.c_int32),
    ("pciDeviceID", ctypes.c_int32),
    ("pciDomainID", ctypes.c_int32),
    ("tccDriver", ctypes.c_int32),
    ("asyncEngineCount", ctypes.c_int32),
    ("unifiedAddressing", ctypes.c_int32),
    ("memoryBusWidth", ctypes.c_int32),
    ("l2CacheSize", ctypes.c_int32),
    ("persistingL2CacheMaxSize", ctypes.c_int32),
    ("maxThreadsPerMultiProcessor", ctypes.c_int32),
    ("streamPrioritiesSupported", ctypes.c_int32),
    ("globalL1CacheSupported", ctypes.c_int32),
    ("localL1CacheSupported", ctypes.c_int32),
    ("sharedMemPerMultiprocessor", ctypes.c_uint64),
    ("regsPerMultiprocessor", ctypes.c_int32),
    ("managedMemory", ctypes.c_int32),
    ("isMultiGpuBoard", ctypes.c_int32),
    ("multiGpuBoardGroupID", ctypes.c_int32),
    ("hostNativeAtomicSupported", ctypes.c_int32),
    ("pageableMemoryAccess", ctypes.c_int32),
    ("concurrentManagedAccess", ctypes.c_int32),
    ("computePreemptionSupported", ctypes.c_int32),
    ("canUseHostPointerForRegisteredMem", ctypes.c_int32),
    ("cooperativeLaunch", ctypes.c_int32),
    ("sharedMemPerBlockOptin", ctypes.c_uint64),
    ("pageableMemoryAccessUsesHostPageTables", ctypes.c_int32),
    ("directManagedMemAccessFromHost", ctypes.c_int32),
    ("maxBlocksPerMultiProcessor", ctypes.c_int32),
    ("accessPolicyMaxWindowSize", ctypes.c_int32),
    ("reservedSharedMemPerBlock", ctypes.c_uint64),
    ("hostRegisterSupported", ctypes.c_int32),
    ("sparseCudaArraySupported", ctypes.c_int32),
    ("hostRegisterReadOnlySupported", ctypes.c_int32),
    ("timelineSemaphoreInteropSupported", ctypes.c_int32),
    ("memoryPoolsSupported", ctypes.c_int32),
    ("gpuDirectRDMASupported", ctypes.c_int32),
    ("gpuDirectRDMAFlushWritesOptions", ctypes.c_uint32),
    ("gpuDirectRDMAWritesOrdering", ctypes.c_int32),
    ("memoryPoolSupportedHandleTypes", ctypes.c_uint32),
    ("deferredMappingCudaArraySupported", ctypes.c_int32),
    ("ipcEventSupported", ctypes.c_int32),
    ("clusterLaunch", ctypes.c_int32),
    ("unifiedFunctionPointers", ctypes.c_int32),
    ("deviceNumaConfig", ctypes.c_int32),
    ("deviceNumaId", ctypes.c_int32),
    ("mpsEnabled", ctypes.c_int32),
    ("hostNumaId", ctypes.c_int32),
    ("gpuPciDeviceID", ctypes.c_uint32),
    ("gpuPciSubsystemID", ctypes.c_uint32),
    ("hostNumaMultinodeIpcSupported", ctypes.c_int32),
    ("reserved", ctypes.c_int32 * 56),
  ]


class cudaIpcEventHandle_t(Struct):
  """64 bytes."""
  reserved: bytes
  _fields_ = [
    ("reserved", ctypes.c_char * 64),
  ]


class cudaIpcMemHandle_t(Struct):
  """64 bytes."""
  reserved: bytes
  _fields_ = [
    ("reserved", ctypes.c_char * 64),
  ]


class cudaKernelNodeParams(Struct):
  """56 bytes."""
  func: int
  gridDim: dim3
  blockDim: dim3
  sharedMemBytes: int
  kernelParams: int
  extra: int
  _fields_ = [
    ("func", ctypes.c_uint64),
    ("gridDim", dim3),
    ("blockDim", dim3),
    ("sharedMemBytes", ctypes.c_uint32),
    ("kernelParams", ctypes.c_uint64),
    ("extra", ctypes.c_uint64),
  ]


class cudaKernelNodeParamsV2(Struct):
  """56 bytes."""
  func: int
  gridDim: dim3
  blockDim: dim3
  sharedMemBytes: int
  kernelParams: int
  extra: int
  _fields_ = [
    ("func", ctypes.c_uint64),
    ("gridDim", dim3),
    ("blockDim", dim3),
    ("sharedMemBytes", ctypes.c_uint32),
    ("kernelParams", ctypes.c_uint64),
    ("extra", ctypes.c_uint64),
  ]


class cudaExternalSemaphoreSignalNodeParamsV2(Struct):
  """24 bytes."""
  extSemArray: int
  paramsArray: int
  numExtSems: int
  _fields_ = [
    ("extSemArray", ctypes.c_uint64),
    ("paramsArray", ctypes.c_uint64),
    ("numExtSems", ctypes.c_uint32),
  ]


class cudaExternalSemaphoreWaitNodeParamsV2(Struct):
  """24 bytes."""
  extSemArray: int
  paramsArray: int
  numExtSems: int
  _fields_ = [
    ("extSemArray", ctypes.c_uint64),
    ("paramsArray", ctypes.c_uint64),
    ("numExtSems", ctypes.c_uint32),
  ]


class cudaConditionalNodeParams(Struct):
  """24 bytes."""
  handle: int
  type: int
  size: int
  phGraph_out: int
  _fields_ = [
    ("handle", ctypes.c_uint64),
    ("type", ctypes.c_uint32),
    ("size", ctypes.c_uint32),
    ("phGraph_out", ctypes.c_uint64),
  ]


class cudaChildGraphNodeParams(Struct):
  """16 bytes."""
  graph: int
  ownership: int
  _fields_ = [
    ("graph", ctypes.c_uint64),
    ("ownership", ctypes.c_uint32),
  ]


class cudaEventRecordNodeParams(Struct):
  """8 bytes."""
  event: int
  _fields_ = [
    ("event", ctypes.c_uint64),
  ]


class cudaEventWaitNodeParams(Struct):
  """8 bytes."""
  event: int
  _fields_ = [
    ("event", ctypes.c_uint64),
  ]


class cudaGraphNodeParams_0(Union):
  """232 bytes."""
  reserved1: ctypes.Array[ctypes.c_int64]
  kernel: cudaKernelNodeParamsV2
  memcpy: cudaMemcpyNodeParams
  memset: cudaMemsetParamsV2
  host: cudaHostNodeParamsV2
  graph: cudaChildGraphNodeParams
  eventWait: cudaEventWaitNodeParams
  eventRecord: cudaEventRecordNodeParams
  extSemSignal: cudaExternalSemaphoreSignalNodeParamsV2
  extSemWait: cudaExternalSemaphoreWaitNodeParamsV2
  alloc: cudaMemAllocNodeParamsV2
  free: cudaMemFreeNodeParams
  conditional: cudaConditionalNodeParams
  _fields_ = [
    ("reserved1", ctypes.c_int64 * 29),
    ("kernel", cudaKernelNodeParamsV2),
    ("memcpy", cudaMemcpyNodeParams),
    ("memset", cudaMemsetParamsV2),
    ("host", cudaHostNodeParamsV2),
    ("graph", cudaChildGraphNodeParams),
    ("eventWait", cudaEventWaitNodeParams),
    ("eventRecord", cudaEventRecordNodeParams),
    ("extSemSignal", cudaExternalSemaphoreSignalNodeParamsV2),
    ("extSemWait", cudaExternalSemaphoreWaitNodeParamsV2),
    ("alloc", cudaMemAllocNodeParamsV2),
    ("free", cudaMemFreeNodeParams),
    ("conditional", cudaConditionalNodeParams),
  ]


class cudaGraphNodeParams(Struct):
  """256 bytes."""
  type: int
  reserved0: ctypes.Array[ctypes.c_int32]
  reserved1: ctypes.Array[ctypes.c_int64]
  kernel: cudaKernelNodeParamsV2
  memcpy: cudaMemcpyNodeParams
  memset: cudaMemsetParamsV2
  host: cudaHostNodeParamsV2
  graph: cudaChildGraphNodeParams
  eventWait: cudaEventWaitNodeParams
  eventRecord: cudaEventRecordNodeParams
  extSemSignal: cudaExternalSemaphoreSignalNodeParamsV2
  extSemWait: cudaExternalSemaphoreWaitNodeParamsV2
  alloc: cudaMemAllocNodeParamsV2
  free: cudaMemFreeNodeParams
  conditional: cudaConditionalNodeParams
  reserved2: int
  _anonymous_ = ('_0',)
  _fields_ = [
    ("type", ctypes.c_uint32),
    ("reserved0", ctypes.c_int32 * 3),
    ("_0", cudaGraphNodeParams_0),
    ("reserved2", ctypes.c_int64),
  ]


class cudaLaunchConfig_t(Struct):
  """56 bytes."""
  gridDim: dim3
  blockDim: dim3
  dynamicSmemBytes: int
  stream: int
  attrs: int
  numAttrs: int
  _fields_ = [
    ("gridDim", dim3),
    ("blockDim", dim3),
    ("dynamicSmemBytes", ctypes.c_uint64),
    ("stream", ctypes.c_uint64),
    ("attrs", ctypes.c_uint64),
    ("numAttrs", ctypes.c_uint32),
  ]


class cudaTextureDesc(Struct):
  """72 bytes."""
  addressMode: ctypes.Array[ctypes.c_uint32]
  filterMode: int
  readMode: int
  sRGB: int
  borderColor: ctypes.Array[ctypes.c_float]
  normalizedCoords: int
  maxAnisotropy: int
  mipmapFilterMode: int
  mipmapLevelBias: float
  minMipmapLevelClamp: float
  maxMipmapLevelClamp: float
  disableTrilinearOptimization: int
  seamlessCubemap: int
  _fields_ = [
    ("addressMode", ctypes.c_uint32 * 3),
    ("filterMode", ctypes.c_uint32),
    ("readMode", ctypes.c_uint32),
    ("sRGB", ctypes.c_int32),
    ("borderColor", ctypes.c_float * 4),
    ("normalizedCoords", ctypes.c_int32),
    ("maxAnisotropy", ctypes.c_uint32),
    ("mipmapFilterMode", ctypes.c_uint32),
    ("mipmapLevelBias", ctypes.c_float),
    ("minMipmapLevelClamp", ctypes.c_float),
    ("maxMipmapLevelClamp", ctypes.c_float),
    ("disableTrilinearOptimization", ctypes.c_int32),
    ("seamlessCubemap", ctypes.c_int32),
  ]


FUNCTIONS: dict[str, tuple[type, ...]] = {
  "__cudaGetKernel": (c_void_p, c_void_p,),
  "__cudaInitModule": (c_void_p,),
  "__cudaLaunchKernel": (c_void_p, dim3, dim3, c_void_p, c_size_t, c_void_p,),
  "__cudaLaunchKernel_ptsz": (c_void_p, dim3, dim3, c_void_p, c_size_t, c_void_p,),
  "__cudaPopCallConfiguration": (c_void_p, c_void_p, c_void_p, c_void_p,),
  "__cudaPushCallConfiguration": (dim3, dim3, c_size_t, c_void_p,),
  "__cudaRegisterFatBinary": (c_void_p,),
  "__cudaRegisterFatBinaryEnd": (c_void_p,),
  "__cudaRegisterFunction": (c_void_p, c_void_p, c_void_p, c_void_p, c_int32, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,),
  "__cudaRegisterManagedVar": (c_void_p, c_void_p, c_void_p, c_void_p, c_int32, c_size_t, c_int32, c_int32,),
  "__cudaRegisterSurface": (c_void_p, c_void_p, c_void_p, c_void_p, c_int32, c_int32,),
  "__cudaRegisterTexture": (c_void_p, c_void_p, c_void_p, c_void_p, c_int32, c_int32, c_int32,),
  "__cudaRegisterVar": (c_void_p, c_void_p, c_void_p, c_void_p, c_int32, c_size_t, c_int32, c_int32,),
  "__cudaUnregisterFatBinary": (c_void_p,),
  "cudaArrayGetInfo": (c_void_p, c_void_p, c_void_p, c_void_p,),
  "cudaArrayGetMemoryRequirements": (c_void_p, c_void_p, c_int32,),
  "cudaArrayGetPlane": (c_void_p, c_void_p, c_uint32,),
  "cudaArrayGetSparseProperties": (c_void_p, c_void_p,),
  "cudaChooseDevice": (c_void_p, c_void_p,),
  "cudaCreateSurfaceObject": (c_void_p, c_void_p,),
  "cudaCreateTextureObject": (c_void_p, c_void_p, c_void_p, c_void_p,),
  "cudaCtxResetPersistingL2Cache": (),
  "cudaDestroyExternalMemory": (c_void_p,),
  "cudaDestroyExternalSemaphore": (c_void_p,),
  "cudaDestroySurfaceObject": (c_uint64,),
  "cudaDestroyTextureObject": (c_uint64,),
  "cudaDeviceCanAccessPeer": (c_void_p, c_int32, c_int32,),
  "cudaDeviceDisablePeerAccess": (c_int32,),
  "cudaDeviceEnablePeerAccess": (c_int32, c_uint32,),
  "cudaDeviceFlushGPUDirectRDMAWrites": (c_int32, c_int32,),
  "cudaDeviceGetAttribute": (c_void_p, c_int32, c_int32,),
  "cudaDeviceGetByPCIBusId": (c_void_p, c_void_p,),
  "cudaDeviceGetCacheConfig": (c_void_p,),
  "cudaDeviceGetDefaultMemPool": (c_void_p, c_int32,),
  "cudaDeviceGetGraphMemAttribute": (c_int32, c_int32, c_void_p,),
  "cudaDeviceGetHostAtomicCapabilities": (c_void_p, c_void_p, c_uint32, c_int32,),
  "cudaDeviceGetLimit": (c_void_p, c_int32,),
  "cudaDeviceGetMemPool": (c_void_p, c_int32,),
  "cudaDeviceGetNvSciSyncAttributes": (c_void_p, c_int32, c_int32,),
  "cudaDeviceGetP2PAtomicCapabilities": (c_void_p, c_void_p, c_uint32, c_int32, c_int32,),
  "cudaDeviceGetP2PAttribute": (c_void_p, c_int32, c_int32, c_int32,),
  "cudaDeviceGetPCIBusId": (c_void_p, c_int32, c_int32,),
  "cudaDeviceGetSharedMemConfig": (c_void_p,),
  "cudaDeviceGetStreamPriorityRange": (c_void_p, c_void_p,),
  "cudaDeviceGetTexture1DLinearMaxWidth": (c_void_p, c_void_p, c_int32,),
  "cudaDeviceGraphMemTrim": (c_int32,),
  "cudaDeviceRegisterAsyncNotification": (c_int32, c_void_p, c_void_p, c_void_p,),
  "cudaDeviceReset": (),
  "cudaDeviceSetCacheConfig": (c_int32,),
  "cudaDeviceSetGraphMemAttribute": (c_int32, c_int32, c_void_p,),
  "cudaDeviceSetLimit": (c_int32, c_size_t,),
  "cudaDeviceSetMemPool": (c_int32, c_void_p,),
  "cudaDeviceSetSharedMemConfig": (c_int32,),
  "cudaDeviceSynchronize": (),
  "cudaDeviceUnregisterAsyncNotification": (c_int32, c_void_p,),
  "cudaDriverGetVersion": (c_void_p,),
  "cudaEventCreate": (c_void_p,),
  "cudaEventCreateWithFlags": (c_void_p, c_uint32,),
  "cudaEventDestroy": (c_void_p,),
  "cudaEventElapsedTime": (c_void_p, c_void_p, c_void_p,),
  "cudaEventQuery": (c_void_p,),
  "cudaEventRecord": (c_void_p, c_void_p,),
  "cudaEventRecordWithFlags": (c_void_p, c_void_p, c_uint32,),
  "cudaEventSynchronize": (c_void_p,),
  "cudaExternalMemoryGetMappedBuffer": (c_void_p, c_void_p, c_void_p,),
  "cudaExternalMemoryGetMappedMipmappedArray": (c_void_p, c_void_p, c_void_p,),
  "cudaFree": (c_void_p,),
  "cudaFreeArray": (c_void_p,),
  "cudaFreeAsync": (c_void_p, c_void_p,),
  "cudaFreeHost": (c_void_p,),
  "cudaFreeMipmappedArray": (c_void_p,),
  "cudaFuncGetAttributes": (c_void_p, c_void_p,),
  "cudaFuncGetName": (c_void_p, c_void_p,),
  "cudaFuncGetParamInfo": (c_void_p, c_size_t, c_void_p, c_void_p,),
  "cudaFuncSetAttribute": (c_void_p, c_int32, c_int32,),
  "cudaFuncSetCacheConfig": (c_void_p, c_int32,),
  "cudaFuncSetSharedMemConfig": (c_void_p, c_int32,),
  "cudaGetChannelDesc": (c_void_p, c_void_p,),
  "cudaGetDevice": (c_void_p,),
  "cudaGetDeviceCount": (c_void_p,),
  "cudaGetDeviceFlags": (c_void_p,),
  "cudaGetDeviceProperties": (c_void_p, c_int32,),
  "cudaGetDriverEntryPoint": (c_void_p, c_void_p, c_uint64, c_void_p,),
  "cudaGetDriverEntryPointByVersion": (c_void_p, c_void_p, c_uint32, c_uint64, c_void_p,),
  "cudaGetErrorName": (c_int32,),
  "cudaGetErrorString": (c_int32,),
  "cudaGetExportTable": (c_void_p, c_void_p,),
  "cudaGetFuncBySymbol": (c_void_p, c_void_p,),
  "cudaGetKernel": (c_void_p, c_void_p,),
  "cudaGetLastError": (),
  "cudaGetMipmappedArrayLevel": (c_void_p, c_void_p, c_uint32,),
  "cudaGetSurfaceObjectResourceDesc": (c_void_p, c_uint64,),
  "cudaGetSymbolAddress": (c_void_p, c_void_p,),
  "cudaGetSymbolSize": (c_void_p, c_void_p,),
  "cudaGetTextureObjectResourceDesc": (c_void_p, c_uint64,),
  "cudaGetTextureObjectResourceViewDesc": (c_void_p, c_uint64,),
  "cudaGetTextureObjectTextureDesc": (c_void_p, c_uint64,),
  "cudaGraphAddChildGraphNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddDependencies": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t,),
  "cudaGraphAddEmptyNode": (c_void_p, c_void_p, c_void_p, c_size_t,),
  "cudaGraphAddEventRecordNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddEventWaitNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddExternalSemaphoresSignalNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddExternalSemaphoresWaitNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddHostNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddKernelNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddMemAllocNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddMemFreeNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddMemcpyNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddMemcpyNode1D": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_int32,),
  "cudaGraphAddMemcpyNodeFromSymbol": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_size_t, c_int32,),
  "cudaGraphAddMemcpyNodeToSymbol": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_size_t, c_int32,),
  "cudaGraphAddMemsetNode": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphAddNode": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaGraphChildGraphNodeGetGraph": (c_void_p, c_void_p,),
  "cudaGraphClone": (c_void_p, c_void_p,),
  "cudaGraphConditionalHandleCreate": (c_void_p, c_void_p, c_uint32, c_uint32,),
  "cudaGraphCreate": (c_void_p, c_uint32,),
  "cudaGraphDebugDotPrint": (c_void_p, c_void_p, c_uint32,),
  "cudaGraphDestroy": (c_void_p,),
  "cudaGraphDestroyNode": (c_void_p,),
  "cudaGraphEventRecordNodeGetEvent": (c_void_p, c_void_p,),
  "cudaGraphEventRecordNodeSetEvent": (c_void_p, c_void_p,),
  "cudaGraphEventWaitNodeGetEvent": (c_void_p, c_void_p,),
  "cudaGraphEventWaitNodeSetEvent": (c_void_p, c_void_p,),
  "cudaGraphExecChildGraphNodeSetParams": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecDestroy": (c_void_p,),
  "cudaGraphExecEventRecordNodeSetEvent": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecEventWaitNodeSetEvent": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecExternalSemaphoresSignalNodeSetParams": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecExternalSemaphoresWaitNodeSetParams": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecGetFlags": (c_void_p, c_void_p,),
  "cudaGraphExecHostNodeSetParams": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecKernelNodeSetParams": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecMemcpyNodeSetParams": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecMemcpyNodeSetParams1D": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_int32,),
  "cudaGraphExecMemcpyNodeSetParamsFromSymbol": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_int32,),
  "cudaGraphExecMemcpyNodeSetParamsToSymbol": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_int32,),
  "cudaGraphExecMemsetNodeSetParams": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecNodeSetParams": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExecUpdate": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphExternalSemaphoresSignalNodeGetParams": (c_void_p, c_void_p,),
  "cudaGraphExternalSemaphoresSignalNodeSetParams": (c_void_p, c_void_p,),
  "cudaGraphExternalSemaphoresWaitNodeGetParams": (c_void_p, c_void_p,),
  "cudaGraphExternalSemaphoresWaitNodeSetParams": (c_void_p, c_void_p,),
  "cudaGraphGetEdges": (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,),
  "cudaGraphGetNodes": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphGetRootNodes": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphHostNodeGetParams": (c_void_p, c_void_p,),
  "cudaGraphHostNodeSetParams": (c_void_p, c_void_p,),
  "cudaGraphInstantiate": (c_void_p, c_void_p, c_uint64,),
  "cudaGraphInstantiateWithFlags": (c_void_p, c_void_p, c_uint64,),
  "cudaGraphInstantiateWithParams": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphKernelNodeCopyAttributes": (c_void_p, c_void_p,),
  "cudaGraphKernelNodeGetAttribute": (c_void_p, c_int32, c_void_p,),
  "cudaGraphKernelNodeGetParams": (c_void_p, c_void_p,),
  "cudaGraphKernelNodeSetAttribute": (c_void_p, c_int32, c_void_p,),
  "cudaGraphKernelNodeSetParams": (c_void_p, c_void_p,),
  "cudaGraphLaunch": (c_void_p, c_void_p,),
  "cudaGraphMemAllocNodeGetParams": (c_void_p, c_void_p,),
  "cudaGraphMemFreeNodeGetParams": (c_void_p, c_void_p,),
  "cudaGraphMemcpyNodeGetParams": (c_void_p, c_void_p,),
  "cudaGraphMemcpyNodeSetParams": (c_void_p, c_void_p,),
  "cudaGraphMemcpyNodeSetParams1D": (c_void_p, c_void_p, c_void_p, c_size_t, c_int32,),
  "cudaGraphMemcpyNodeSetParamsFromSymbol": (c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_int32,),
  "cudaGraphMemcpyNodeSetParamsToSymbol": (c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_int32,),
  "cudaGraphMemsetNodeGetParams": (c_void_p, c_void_p,),
  "cudaGraphMemsetNodeSetParams": (c_void_p, c_void_p,),
  "cudaGraphNodeFindInClone": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphNodeGetDependencies": (c_void_p, c_void_p, c_void_p, c_void_p,),
  "cudaGraphNodeGetDependentNodes": (c_void_p, c_void_p, c_void_p, c_void_p,),
  "cudaGraphNodeGetEnabled": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphNodeGetType": (c_void_p, c_void_p,),
  "cudaGraphNodeSetEnabled": (c_void_p, c_void_p, c_uint32,),
  "cudaGraphNodeSetParams": (c_void_p, c_void_p,),
  "cudaGraphReleaseUserObject": (c_void_p, c_void_p, c_uint32,),
  "cudaGraphRemoveDependencies": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t,),
  "cudaGraphRetainUserObject": (c_void_p, c_void_p, c_uint32, c_uint32,),
  "cudaGraphUpload": (c_void_p, c_void_p,),
  "cudaGraphicsMapResources": (c_int32, c_void_p, c_void_p,),
  "cudaGraphicsResourceGetMappedMipmappedArray": (c_void_p, c_void_p,),
  "cudaGraphicsResourceGetMappedPointer": (c_void_p, c_void_p, c_void_p,),
  "cudaGraphicsResourceSetMapFlags": (c_void_p, c_uint32,),
  "cudaGraphicsSubResourceGetMappedArray": (c_void_p, c_void_p, c_uint32, c_uint32,),
  "cudaGraphicsUnmapResources": (c_int32, c_void_p, c_void_p,),
  "cudaGraphicsUnregisterResource": (c_void_p,),
  "cudaHostAlloc": (c_void_p, c_size_t, c_uint32,),
  "cudaHostGetDevicePointer": (c_void_p, c_void_p, c_uint32,),
  "cudaHostGetFlags": (c_void_p, c_void_p,),
  "cudaHostRegister": (c_void_p, c_size_t, c_uint32,),
  "cudaHostUnregister": (c_void_p,),
  "cudaImportExternalMemory": (c_void_p, c_void_p,),
  "cudaImportExternalSemaphore": (c_void_p, c_void_p,),
  "cudaInitDevice": (c_int32, c_uint32, c_uint32,),
  "cudaIpcCloseMemHandle": (c_void_p,),
  "cudaIpcGetEventHandle": (c_void_p, c_void_p,),
  "cudaIpcGetMemHandle": (c_void_p, c_void_p,),
  "cudaIpcOpenEventHandle": (c_void_p, cudaIpcEventHandle_t,),
  "cudaIpcOpenMemHandle": (c_void_p, cudaIpcMemHandle_t, c_uint32,),
  "cudaKernelSetAttributeForDevice": (c_void_p, c_int32, c_int32, c_int32,),
  "cudaLaunchCooperativeKernel": (c_void_p, dim3, dim3, c_void_p, c_size_t, c_void_p,),
  "cudaLaunchHostFunc": (c_void_p, c_void_p, c_void_p,),
  "cudaLaunchKernel": (c_void_p, dim3, dim3, c_void_p, c_size_t, c_void_p,),
  "cudaLaunchKernelExC": (c_void_p, c_void_p, c_void_p,),
  "cudaLibraryEnumerateKernels": (c_void_p, c_uint32, c_void_p,),
  "cudaLibraryGetGlobal": (c_void_p, c_void_p, c_void_p, c_void_p,),
  "cudaLibraryGetKernel": (c_void_p, c_void_p, c_void_p,),
  "cudaLibraryGetKernelCount": (c_void_p, c_void_p,),
  "cudaLibraryGetManaged": (c_void_p, c_void_p, c_void_p, c_void_p,),
  "cudaLibraryGetUnifiedFunction": (c_void_p, c_void_p, c_void_p,),
  "cudaLibraryLoadData": (c_void_p, c_void_p, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_uint32,),
  "cudaLibraryLoadFromFile": (c_void_p, c_void_p, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_uint32,),
  "cudaLibraryUnload": (c_void_p,),
  "cudaLogsCurrent": (c_void_p, c_uint32,),
  "cudaLogsDumpToFile": (c_void_p, c_void_p, c_uint32,),
  "cudaLogsDumpToMemory": (c_void_p, c_void_p, c_void_p, c_uint32,),
  "cudaLogsRegisterCallback": (c_void_p, c_void_p, c_void_p,),
  "cudaLogsUnregisterCallback": (c_void_p,),
  "cudaMalloc": (c_void_p, c_size_t,),
  "cudaMalloc3D": (c_void_p, cudaExtent,),
  "cudaMalloc3DArray": (c_void_p, c_void_p, cudaExtent, c_uint32,),
  "cudaMallocArray": (c_void_p, c_void_p, c_size_t, c_size_t, c_uint32,),
  "cudaMallocAsync": (c_void_p, c_size_t, c_void_p,),
  "cudaMallocFromPoolAsync": (c_void_p, c_size_t, c_void_p, c_void_p,),
  "cudaMallocHost": (c_void_p, c_size_t,),
  "cudaMallocManaged": (c_void_p, c_size_t, c_uint32,),
  "cudaMallocMipmappedArray": (c_void_p, c_void_p, cudaExtent, c_uint32, c_uint32,),
  "cudaMallocPitch": (c_void_p, c_void_p, c_size_t, c_size_t,),
  "cudaMemAdvise": (c_void_p, c_size_t, c_int32, cudaMemLocation,),
  "cudaMemDiscardAndPrefetchBatchAsync": (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_uint64, c_void_p,),
  "cudaMemDiscardBatchAsync": (c_void_p, c_void_p, c_size_t, c_uint64, c_void_p,),
  "cudaMemGetDefaultMemPool": (c_void_p, c_void_p, c_int32,),
  "cudaMemGetInfo": (c_void_p, c_void_p,),
  "cudaMemGetMemPool": (c_void_p, c_void_p, c_int32,),
  "cudaMemPoolCreate": (c_void_p, c_void_p,),
  "cudaMemPoolDestroy": (c_void_p,),
  "cudaMemPoolExportPointer": (c_void_p, c_void_p,),
  "cudaMemPoolExportToShareableHandle": (c_void_p, c_void_p, c_int32, c_uint32,),
  "cudaMemPoolGetAccess": (c_void_p, c_void_p, c_void_p,),
  "cudaMemPoolGetAttribute": (c_void_p, c_int32, c_void_p,),
  "cudaMemPoolImportFromShareableHandle": (c_void_p, c_void_p, c_int32, c_uint32,),
  "cudaMemPoolImportPointer": (c_void_p, c_void_p, c_void_p,),
  "cudaMemPoolSetAccess": (c_void_p, c_void_p, c_size_t,),
  "cudaMemPoolSetAttribute": (c_void_p, c_int32, c_void_p,),
  "cudaMemPoolTrimTo": (c_void_p, c_size_t,),
  "cudaMemPrefetchAsync": (c_void_p, c_size_t, cudaMemLocation, c_uint32, c_void_p,),
  "cudaMemPrefetchBatchAsync": (c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_uint64, c_void_p,),
  "cudaMemRangeGetAttribute": (c_void_p, c_size_t, c_int32, c_void_p, c_size_t,),
  "cudaMemRangeGetAttributes": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t,),
  "cudaMemSetMemPool": (c_void_p, c_int32, c_void_p,),
  "cudaMemcpy": (c_void_p, c_void_p, c_size_t, c_int32,),
  "cudaMemcpy2D": (c_void_p, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_int32,),
  "cudaMemcpy2DArrayToArray": (c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_size_t, c_int32,),
  "cudaMemcpy2DAsync": (c_void_p, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_int32, c_void_p,),
  "cudaMemcpy2DFromArray": (c_void_p, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_size_t, c_int32,),
  "cudaMemcpy2DFromArrayAsync": (c_void_p, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_size_t, c_int32, c_void_p,),
  "cudaMemcpy2DToArray": (c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_int32,),
  "cudaMemcpy2DToArrayAsync": (c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_int32, c_void_p,),
  "cudaMemcpy3D": (c_void_p,),
  "cudaMemcpy3DAsync": (c_void_p, c_void_p,),
  "cudaMemcpy3DBatchAsync": (c_size_t, c_void_p, c_uint64, c_void_p,),
  "cudaMemcpy3DPeer": (c_void_p,),
  "cudaMemcpy3DPeerAsync": (c_void_p, c_void_p,),
  "cudaMemcpyArrayToArray": (c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_int32,),
  "cudaMemcpyAsync": (c_void_p, c_void_p, c_size_t, c_int32, c_void_p,),
  "cudaMemcpyBatchAsync": (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p,),
  "cudaMemcpyFromArray": (c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_int32,),
  "cudaMemcpyFromArrayAsync": (c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_int32, c_void_p,),
  "cudaMemcpyFromSymbol": (c_void_p, c_void_p, c_size_t, c_size_t, c_int32,),
  "cudaMemcpyFromSymbolAsync": (c_void_p, c_void_p, c_size_t, c_size_t, c_int32, c_void_p,),
  "cudaMemcpyPeer": (c_void_p, c_int32, c_void_p, c_int32, c_size_t,),
  "cudaMemcpyPeerAsync": (c_void_p, c_int32, c_void_p, c_int32, c_size_t, c_void_p,),
  "cudaMemcpyToArray": (c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_int32,),
  "cudaMemcpyToArrayAsync": (c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_int32, c_void_p,),
  "cudaMemcpyToSymbol": (c_void_p, c_void_p, c_size_t, c_size_t, c_int32,),
  "cudaMemcpyToSymbolAsync": (c_void_p, c_void_p, c_size_t, c_size_t, c_int32, c_void_p,),
  "cudaMemset": (c_void_p, c_int32, c_size_t,),
  "cudaMemset2D": (c_void_p, c_size_t, c_int32, c_size_t, c_size_t,),
  "cudaMemset2DAsync": (c_void_p, c_size_t, c_int32, c_size_t, c_size_t, c_void_p,),
  "cudaMemset3D": (cudaPitchedPtr, c_int32, cudaExtent,),
  "cudaMemset3DAsync": (cudaPitchedPtr, c_int32, cudaExtent, c_void_p,),
  "cudaMemsetAsync": (c_void_p, c_int32, c_size_t, c_void_p,),
  "cudaMipmappedArrayGetMemoryRequirements": (c_void_p, c_void_p, c_int32,),
  "cudaMipmappedArrayGetSparseProperties": (c_void_p, c_void_p,),
  "cudaOccupancyAvailableDynamicSMemPerBlock": (c_void_p, c_void_p, c_int32, c_int32,),
  "cudaOccupancyMaxActiveBlocksPerMultiprocessor": (c_void_p, c_void_p, c_int32, c_size_t,),
  "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags": (c_void_p, c_void_p, c_int32, c_size_t, c_uint32,),
  "cudaOccupancyMaxActiveClusters": (c_void_p, c_void_p, c_void_p,),
  "cudaOccupancyMaxPotentialClusterSize": (c_void_p, c_void_p, c_void_p,),
  "cudaPeekAtLastError": (),
  "cudaPointerGetAttributes": (c_void_p, c_void_p,),
  "cudaRuntimeGetVersion": (c_void_p,),
  "cudaSetDevice": (c_int32,),
  "cudaSetDeviceFlags": (c_uint32,),
  "cudaSetValidDevices": (c_void_p, c_int32,),
  "cudaSignalExternalSemaphoresAsync": (c_void_p, c_void_p, c_uint32, c_void_p,),
  "cudaStreamAddCallback": (c_void_p, c_void_p, c_void_p, c_uint32,),
  "cudaStreamAttachMemAsync": (c_void_p, c_void_p, c_size_t, c_uint32,),
  "cudaStreamBeginCapture": (c_void_p, c_int32,),
  "cudaStreamBeginCaptureToGraph": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_int32,),
  "cudaStreamCopyAttributes": (c_void_p, c_void_p,),
  "cudaStreamCreate": (c_void_p,),
  "cudaStreamCreateWithFlags": (c_void_p, c_uint32,),
  "cudaStreamCreateWithPriority": (c_void_p, c_uint32, c_int32,),
  "cudaStreamDestroy": (c_void_p,),
  "cudaStreamEndCapture": (c_void_p, c_void_p,),
  "cudaStreamGetAttribute": (c_void_p, c_int32, c_void_p,),
  "cudaStreamGetCaptureInfo": (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,),
  "cudaStreamGetDevice": (c_void_p, c_void_p,),
  "cudaStreamGetFlags": (c_void_p, c_void_p,),
  "cudaStreamGetId": (c_void_p, c_void_p,),
  "cudaStreamGetPriority": (c_void_p, c_void_p,),
  "cudaStreamIsCapturing": (c_void_p, c_void_p,),
  "cudaStreamQuery": (c_void_p,),
  "cudaStreamSetAttribute": (c_void_p, c_int32, c_void_p,),
  "cudaStreamSynchronize": (c_void_p,),
  "cudaStreamUpdateCaptureDependencies": (c_void_p, c_void_p, c_void_p, c_size_t, c_uint32,),
  "cudaStreamWaitEvent": (c_void_p, c_void_p, c_uint32,),
  "cudaThreadExchangeStreamCaptureMode": (c_void_p,),
  "cudaUserObjectCreate": (c_void_p, c_void_p, c_void_p, c_uint32, c_uint32,),
  "cudaUserObjectRelease": (c_void_p, c_uint32,),
  "cudaUserObjectRetain": (c_void_p, c_uint32,),
  "cudaWaitExternalSemaphoresAsync": (c_void_p, c_void_p, c_uint32, c_void_p,),
}

BY_VALUE: tuple[str, ...] = (
)

PER_THREAD: dict[str, str] = {
  "cudaEventRecord": "cudaEventRecord_ptsz",
  "cudaEventRecordWithFlags": "cudaEventRecordWithFlags_ptsz",
  "cudaFreeAsync": "cudaFreeAsync_ptsz",
  "cudaGetDriverEntryPoint": "cudaGetDriverEntryPoint_ptsz",
  "cudaGetDriverEntryPointByVersion": "cudaGetDriverEntryPointByVersion_ptsz",
  "cudaGraphInstantiateWithParams": "cudaGraphInstantiateWithParams_ptsz",
  "cudaGraphLaunch": "cudaGraphLaunch_ptsz",
  "cudaGraphUpload": "cudaGraphUpload_ptsz",
  "cudaLaunchCooperativeKernel": "cudaLaunchCooperativeKernel_ptsz",
  "cudaLaunchHostFunc": "cudaLaunchHostFunc_ptsz",
  "cudaLaunchKernel": "cudaLaunchKernel_ptsz",
  "cudaLaunchKernelExC": "cudaLaunchKernelExC_ptsz",
  "cudaMallocAsync": "cudaMallocAsync_ptsz",
  "cudaMallocFromPoolAsync": "cudaMallocFromPoolAsync_ptsz",
  "cudaMemDiscardAndPrefetchBatchAsync": "cudaMemDiscardAndPrefetchBatchAsync_ptsz",
  "cudaMemDiscardBatchAsync": "cudaMemDiscardBatchAsync_ptsz",
  "cudaMemPrefetchAsync": "cudaMemPrefetchAsync_ptsz",
  "cudaMemPrefetchBatchAsync": "cudaMemPrefetchBatchAsync_ptsz",
  "cudaMemcpy": "cudaMemcpy_ptds",
  "cudaMemcpy2D": "cudaMemcpy2D_ptds",
  "cudaMemcpy2DArrayToArray": "cudaMemcpy2DArrayToArray_ptds",
  "cudaMemcpy2DAsync": "cudaMemcpy2DAsync_ptsz",
  "cudaMemcpy2DFromArray": "cudaMemcpy2DFromArray_ptds",
  "cudaMemcpy2DFromArrayAsync": "cudaMemcpy2DFromArrayAsync_ptsz",
  "cudaMemcpy2DToArray": "cudaMemcpy2DToArray_ptds",
  "cudaMemcpy2DToArrayAsync": "cudaMemcpy2DToArrayAsync_ptsz",
  "cudaMemcpy3D": "cudaMemcpy3D_ptds",
  "cudaMemcpy3DAsync": "cudaMemcpy3DAsync_ptsz",
  "cudaMemcpy3DBatchAsync": "cudaMemcpy3DBatchAsync_ptsz",
  "cudaMemcpy3DPeer": "cudaMemcpy3DPeer_ptds",
  "cudaMemcpy3DPeerAsync": "cudaMemcpy3DPeerAsync_ptsz",
  "cudaMemcpyArrayToArray": "cudaMemcpyArrayToArray_ptds",
  "cudaMemcpyAsync": "cudaMemcpyAsync_ptsz",
  "cudaMemcpyBatchAsync": "cudaMemcpyBatchAsync_ptsz",
  "cudaMemcpyFromArray": "cudaMemcpyFromArray_ptds",
  "cudaMemcpyFromArrayAsync": "cudaMemcpyFromArrayAsync_ptsz",
  "cudaMemcpyFromSymbol": "cudaMemcpyFromSymbol_ptds",
  "cudaMemcpyFromSymbolAsync": "cudaMemcpyFromSymbolAsync_ptsz",
  "cudaMemcpyToArray": "cudaMemcpyToArray_ptds",
  "cudaMemcpyToArrayAsync": "cudaMemcpyToArrayAsync_ptsz",
  "cudaMemcpyToSymbol": "cudaMemcpyToSymbol_ptds",
  "cudaMemcpyToSymbolAsync": "cudaMemcpyToSymbolAsync_ptsz",
  "cudaMemset": "cudaMemset_ptds",
  "cudaMemset2D": "cudaMemset2D_ptds",
  "cudaMemset2DAsync": "cudaMemset2DAsync_ptsz",
  "cudaMemset3D": "cudaMemset3D_ptds",
  "cudaMemset3DAsync": "cudaMemset3DAsync_ptsz",
  "cudaMemsetAsync": "cudaMemsetAsync_ptsz",
  "cudaSignalExternalSemaphoresAsync": "cudaSignalExternalSemaphoresAsync_ptsz",
  "cudaStreamAddCallback": "cudaStreamAddCallback_ptsz",
  "cudaStreamAttachMemAsync": "cudaStreamAttachMemAsync_ptsz",
  "cudaStreamBeginCapture": "cudaStreamBeginCapture_ptsz",
  "cudaStreamBeginCaptureToGraph": "cudaStreamBeginCaptureToGraph_ptsz",
  "cudaStreamCopyAttributes": "cudaStreamCopyAttributes_ptsz",
  "cudaStreamEndCapture": "cudaStreamEndCapture_ptsz",
  "cudaStreamGetAttribute": "cudaStreamGetAttribute_ptsz",
  "cudaStreamGetCaptureInfo": "cudaStreamGetCaptureInfo_ptsz",
  "cudaStreamGetDevice": "cudaStreamGetDevice_ptsz",
  "cudaStreamGetFlags": "cudaStreamGetFlags_ptsz",
  "cudaStreamGetId": "cudaStreamGetId_ptsz",
  "cudaStreamGetPriority": "cudaStreamGetPriority_ptsz",
  "cudaStreamIsCapturing": "cudaStreamIsCapturing_ptsz",
  "cudaStreamQuery": "cudaStreamQuery_ptsz",
  "cudaStreamSetAttribute": "cudaStreamSetAttribute_ptsz",
  "cudaStreamSynchronize": "cudaStreamSynchronize_ptsz",
  "cudaStreamUpdateCaptureDependencies": "cudaStreamUpdateCaptureDependencies_ptsz",
  "cudaStreamWaitEvent": "cudaStreamWaitEvent_ptsz",
  "cudaWaitExternalSemaphoresAsync": "cudaWaitExternalSemaphoresAsync_ptsz",
}
