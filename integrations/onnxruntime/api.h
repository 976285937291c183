/* The part of ONNX Runtime's C API that the provider uses: functions that it calls, and tables of functions that it fills in.
 * They are declared here because no package of ONNX Runtime contains its header.
 *
 * The library gives access to a table of functions for the requested API version. New versions add functions only at the end of
 * a table. The tables below name the functions that are used, with gaps for those that are not; the assertions check every
 * position against the documented order. A table that the provider fills in begins with the version it was made for: a newer
 * ONNX Runtime reads no further than that version's functions. The provider is made for version CLV__ORT_API_VERSION. */
#ifndef CLEAVE_INTEGRATIONS_ONNXRUNTIME_API_H
#define CLEAVE_INTEGRATIONS_ONNXRUNTIME_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLV__ORT_API_VERSION 24u /* that of ONNX Runtime 1.24 */

typedef struct OrtStatus OrtStatus; /* NULL: success */
typedef struct OrtValue OrtValue;
typedef struct OrtValueInfo OrtValueInfo;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorInfo OrtTensorInfo;
typedef struct OrtNode OrtNode;
typedef struct OrtGraph OrtGraph;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtLogger OrtLogger;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtEpGraphSupportInfo OrtEpGraphSupportInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtNodeComputeContext OrtNodeComputeContext;
typedef struct OrtExternalInfo OrtExternalInfo;

enum {
  ORT_CODE_FAIL = 1,
  ORT_CODE_INVALID_ARGUMENT = 2,
  ORT_CODE_NOT_IMPLEMENTED = 9,
  ORT_CODE_INVALID_GRAPH = 10,
  ORT_CODE_EP_FAIL = 11
};
enum { ORT_LOG_VERBOSE, ORT_LOG_INFO, ORT_LOG_WARNING, ORT_LOG_ERROR, ORT_LOG_FATAL };
enum { ORT_DEVICE_CPU = 0, ORT_DEVICE_GPU = 1, ORT_DEVICE_NPU = 2 };
enum { ORT_TYPE_TENSOR = 1 }; /* of a value; others are sequences, maps, optionals and sparse tensors */
enum {
  ORT_ATTRIBUTE_UNDEFINED,
  ORT_ATTRIBUTE_INT,
  ORT_ATTRIBUTE_INTS,
  ORT_ATTRIBUTE_FLOAT,
  ORT_ATTRIBUTE_FLOATS,
  ORT_ATTRIBUTE_STRING,
  ORT_ATTRIBUTE_STRINGS,
  ORT_ATTRIBUTE_GRAPH,
  ORT_ATTRIBUTE_TENSOR
};
/* Element types have ONNX's numbers, except these three. */
enum { ORT_DTYPE_U2 = 24, ORT_DTYPE_I2 = 25, ORT_DTYPE_F8E8M0 = 26 };

#define CALL(name) OrtStatus *(*name)
#define GAP(first, last) void *gap_##first[(last) - (first) + 1];

typedef struct OrtEpApi OrtEpApi;

typedef struct OrtApi {
  OrtStatus *(*CreateStatus)(int code, const char *message);
  int (*GetErrorCode)(const OrtStatus *status);
  const char *(*GetErrorMessage)(const OrtStatus *status);
  GAP(3, 50)
  CALL(GetTensorMutableData)(OrtValue *value, void **data);
  GAP(52, 52)
  CALL(GetStringTensorDataLength)(const OrtValue *value, size_t *size_bytes);
  CALL(GetStringTensorContent)(const OrtValue *value, void *text, size_t size_bytes, size_t *offsets, size_t count);
  CALL(CastTypeInfoToTensorInfo)(const OrtTypeInfo *type, const OrtTensorInfo **info);
  CALL(GetOnnxTypeFromTypeInfo)(const OrtTypeInfo *type, int *kind);
  GAP(57, 59)
  CALL(GetTensorElementType)(const OrtTensorInfo *info, int *dtype);
  CALL(GetDimensionsCount)(const OrtTensorInfo *info, size_t *rank);
  CALL(GetDimensions)(const OrtTensorInfo *info, int64_t *dims, size_t rank);
  CALL(GetSymbolicDimensions)(const OrtTensorInfo *info, const char **names, size_t rank);
  GAP(64, 87)
  CALL(KernelContext_GetInputCount)(const OrtKernelContext *context, size_t *count);
  CALL(KernelContext_GetOutputCount)(const OrtKernelContext *context, size_t *count);
  CALL(KernelContext_GetInput)(const OrtKernelContext *context, size_t index, const OrtValue **value);
  CALL(KernelContext_GetOutput)
  (OrtKernelContext *context, size_t index, const int64_t *dims, size_t rank, OrtValue **value);
  GAP(92, 92)
  void (*ReleaseStatus)(OrtStatus *status);
  GAP(94, 95)
  void (*ReleaseValue)(OrtValue *value);
  GAP(97, 246)
  CALL(Logger_LogMessage)
  (const OrtLogger *logger, int severity, const char *message, const char *path, int line, const char *function);
  GAP(248, 271)
  CALL(ReadOpAttr)(const OrtOpAttr *attribute, int kind, void *data, size_t room_bytes, size_t *size_bytes);
  GAP(273, 288)
  CALL(GetValueInfoName)(const OrtValueInfo *value, const char **name);
  CALL(GetValueInfoTypeInfo)(const OrtValueInfo *value, const OrtTypeInfo **type);
  GAP(291, 294)
  void (*CreateKeyValuePairs)(OrtKeyValuePairs **pairs);
  void (*AddKeyValuePair)(OrtKeyValuePairs *pairs, const char *key, const char *value);
  GAP(297, 297)
  void (*GetKeyValuePairs)(const OrtKeyValuePairs *pairs, const char *const **keys, const char *const **values, size_t *count);
  GAP(299, 299)
  void (*ReleaseKeyValuePairs)(OrtKeyValuePairs *pairs);
  GAP(301, 306)
  int (*HardwareDevice_Type)(const OrtHardwareDevice *device);
  GAP(308, 316)
  const OrtEpApi *(*GetEpApi)(void);
  GAP(318, 323)
  CALL(ValueInfo_GetValueNumConsumers)(const OrtValueInfo *value, size_t *count);
  CALL(ValueInfo_GetValueConsumers)(const OrtValueInfo *value, const OrtNode **nodes, int64_t *inputs, size_t count);
  CALL(ValueInfo_GetInitializerValue)(const OrtValueInfo *value, const OrtValue **tensor);
  CALL(ValueInfo_GetExternalInitializerInfo)(const OrtValueInfo *value, OrtExternalInfo **info);
  GAP(328, 329)
  CALL(ValueInfo_IsGraphOutput)(const OrtValueInfo *value, bool *is_so);
  CALL(ValueInfo_IsConstantInitializer)(const OrtValueInfo *value, bool *is_so);
  GAP(332, 332)
  CALL(Graph_GetName)(const OrtGraph *graph, const char **name);
  CALL(Graph_GetModelPath)(const OrtGraph *graph, const char **path);
  CALL(Graph_GetOnnxIRVersion)(const OrtGraph *graph, int64_t *version);
  CALL(Graph_GetNumOperatorSets)(const OrtGraph *graph, size_t *count);
  CALL(Graph_GetOperatorSets)(const OrtGraph *graph, const char **domains, int64_t *versions, size_t count);
  CALL(Graph_GetNumInputs)(const OrtGraph *graph, size_t *count);
  CALL(Graph_GetInputs)(const OrtGraph *graph, const OrtValueInfo **inputs, size_t count);
  CALL(Graph_GetNumOutputs)(const OrtGraph *graph, size_t *count);
  CALL(Graph_GetOutputs)(const OrtGraph *graph, const OrtValueInfo **outputs, size_t count);
  CALL(Graph_GetNumInitializers)(const OrtGraph *graph, size_t *count);
  CALL(Graph_GetInitializers)(const OrtGraph *graph, const OrtValueInfo **initializers, size_t count);
  CALL(Graph_GetNumNodes)(const OrtGraph *graph, size_t *count);
  CALL(Graph_GetNodes)(const OrtGraph *graph, const OrtNode **nodes, size_t count);
  CALL(Graph_GetParentNode)(const OrtGraph *graph, const OrtNode **node);
  GAP(347, 347)
  CALL(Node_GetId)(const OrtNode *node, size_t *id);
  CALL(Node_GetName)(const OrtNode *node, const char **name);
  CALL(Node_GetOperatorType)(const OrtNode *node, const char **op);
  CALL(Node_GetDomain)(const OrtNode *node, const char **domain);
  CALL(Node_GetSinceVersion)(const OrtNode *node, int *version);
  CALL(Node_GetNumInputs)(const OrtNode *node, size_t *count);
  CALL(Node_GetInputs)(const OrtNode *node, const OrtValueInfo **inputs, size_t count);
  CALL(Node_GetNumOutputs)(const OrtNode *node, size_t *count);
  CALL(Node_GetOutputs)(const OrtNode *node, const OrtValueInfo **outputs, size_t count);
  CALL(Node_GetNumImplicitInputs)(const OrtNode *node, size_t *count);
  CALL(Node_GetImplicitInputs)(const OrtNode *node, const OrtValueInfo **inputs, size_t count);
  CALL(Node_GetNumAttributes)(const OrtNode *node, size_t *count);
  CALL(Node_GetAttributes)(const OrtNode *node, const OrtOpAttr **attributes, size_t count);
  GAP(361, 361)
  CALL(OpAttr_GetTensorAttributeAsOrtValue)(const OrtOpAttr *attribute, OrtValue **tensor);
  CALL(OpAttr_GetType)(const OrtOpAttr *attribute, int *kind);
  CALL(OpAttr_GetName)(const OrtOpAttr *attribute, const char **name);
  CALL(Node_GetNumSubgraphs)(const OrtNode *node, size_t *count);
  CALL(Node_GetSubgraphs)(const OrtNode *node, const OrtGraph **graphs, size_t count, const char **attribute_names);
  GAP(367, 368)
  void (*ReleaseExternalInitializerInfo)(OrtExternalInfo *info);
  const char *(*ExternalInitializerInfo_GetFilePath)(const OrtExternalInfo *info);
  int64_t (*ExternalInitializerInfo_GetFileOffset)(const OrtExternalInfo *info);
  size_t (*ExternalInitializerInfo_GetByteSize)(const OrtExternalInfo *info);
  GAP(373, 377)
  CALL(GetTensorData)(const OrtValue *value, const void **data);
  CALL(GetSessionOptionsConfigEntries)(const OrtSessionOptions *options, OrtKeyValuePairs **pairs);
  GAP(380, 389)
  bool (*TensorTypeAndShape_HasShape)(const OrtTensorInfo *info);
  GAP(391, 413)
  CALL(GetTensorElementTypeAndShapeDataReference)
  (const OrtValue *value, int *dtype, const int64_t **dims, size_t *rank);
} OrtApi;

typedef struct OrtEp OrtEp;
typedef struct OrtEpFactory OrtEpFactory;
typedef struct OrtNodeComputeInfo OrtNodeComputeInfo;

typedef struct OrtNodeFusionOptions {
  uint32_t ort_version_supported;
  bool drop_constant_initializers; /* the provider keeps the constants: they are not inputs of the fused node */
} OrtNodeFusionOptions;

struct OrtEpApi {
  CALL(CreateEpDevice)
  (OrtEpFactory *factory, const OrtHardwareDevice *hardware, const OrtKeyValuePairs *metadata, const OrtKeyValuePairs *options,
   OrtEpDevice **device);
  GAP(1, 1)
  CALL(EpGraphSupportInfo_AddNodesToFuse)
  (OrtEpGraphSupportInfo *info, const OrtNode *const *nodes, size_t count, const OrtNodeFusionOptions *options);
  GAP(3, 3)
  const char *(*NodeComputeContext_NodeName)(const OrtNodeComputeContext *context);
};

/* ---- Tables that the provider fills in. A NULL is an optional function that it does not have. ---- */

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported;
  CALL(CreateState)(OrtNodeComputeInfo *self, OrtNodeComputeContext *context, void **state);
  CALL(Compute)(OrtNodeComputeInfo *self, void *state, OrtKernelContext *context);
  void (*ReleaseState)(OrtNodeComputeInfo *self, void *state);
};

struct OrtEp {
  uint32_t ort_version_supported;
  const char *(*GetName)(const OrtEp *self);
  CALL(GetCapability)(OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *info);
  CALL(Compile)
  (OrtEp *self, const OrtGraph **graphs, const OrtNode **fused_nodes, size_t count, OrtNodeComputeInfo **infos,
   OrtNode **context_nodes);
  void (*ReleaseNodeComputeInfos)(OrtEp *self, OrtNodeComputeInfo **infos, size_t count);
  void *GetPreferredDataLayout, *ShouldConvertDataLayoutForOp, *SetDynamicOptions, *OnRunStart, *OnRunEnd, *CreateAllocator,
      *CreateSyncStreamForDevice, *GetCompiledModelCompatibilityInfo, *GetKernelRegistry, *IsConcurrentRunSupported;
  void *later[16]; /* functions of later versions, which are not read: kept NULL all the same */
};

struct OrtEpFactory {
  uint32_t ort_version_supported;
  const char *(*GetName)(const OrtEpFactory *self);
  const char *(*GetVendor)(const OrtEpFactory *self);
  CALL(GetSupportedDevices)
  (OrtEpFactory *self, const OrtHardwareDevice *const *hardware, size_t hardware_count, OrtEpDevice **devices, size_t room,
   size_t *count);
  CALL(CreateEp)
  (OrtEpFactory *self, const OrtHardwareDevice *const *hardware, const OrtKeyValuePairs *const *metadata, size_t count,
   const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **ep);
  void (*ReleaseEp)(OrtEpFactory *self, OrtEp *ep);
  uint32_t (*GetVendorId)(const OrtEpFactory *self);
  const char *(*GetVersion)(const OrtEpFactory *self);
  void *ValidateCompiledModelCompatibilityInfo;
  CALL(CreateAllocator)(OrtEpFactory *self, const void *memory, const OrtKeyValuePairs *options, void **allocator);
  void (*ReleaseAllocator)(OrtEpFactory *self, void *allocator);
  CALL(CreateDataTransfer)(OrtEpFactory *self, void **transfer);
  bool (*IsStreamAware)(const OrtEpFactory *self);
  void *CreateSyncStreamForDevice, *GetHardwareDeviceIncompatibilityDetails, *CreateExternalResourceImporterForDevice,
      *GetNumCustomOpDomains, *GetCustomOpDomains;
  void *later[16];
};

#undef GAP
#undef CALL

#define CLV__ORT_PLACE(table, function, place) \
  _Static_assert(offsetof(table, function) == (place) * sizeof(void *), #function " must be at index " #place)
CLV__ORT_PLACE(OrtApi, GetErrorMessage, 2);
CLV__ORT_PLACE(OrtApi, GetTensorMutableData, 51);
CLV__ORT_PLACE(OrtApi, GetStringTensorDataLength, 53);
CLV__ORT_PLACE(OrtApi, GetOnnxTypeFromTypeInfo, 56);
CLV__ORT_PLACE(OrtApi, GetTensorElementType, 60);
CLV__ORT_PLACE(OrtApi, GetSymbolicDimensions, 63);
CLV__ORT_PLACE(OrtApi, KernelContext_GetInputCount, 88);
CLV__ORT_PLACE(OrtApi, KernelContext_GetOutput, 91);
CLV__ORT_PLACE(OrtApi, ReleaseStatus, 93);
CLV__ORT_PLACE(OrtApi, ReleaseValue, 96);
CLV__ORT_PLACE(OrtApi, Logger_LogMessage, 247);
CLV__ORT_PLACE(OrtApi, ReadOpAttr, 272);
CLV__ORT_PLACE(OrtApi, GetValueInfoName, 289);
CLV__ORT_PLACE(OrtApi, CreateKeyValuePairs, 295);
CLV__ORT_PLACE(OrtApi, GetKeyValuePairs, 298);
CLV__ORT_PLACE(OrtApi, ReleaseKeyValuePairs, 300);
CLV__ORT_PLACE(OrtApi, HardwareDevice_Type, 307);
CLV__ORT_PLACE(OrtApi, GetEpApi, 317);
CLV__ORT_PLACE(OrtApi, ValueInfo_GetValueNumConsumers, 324);
CLV__ORT_PLACE(OrtApi, ValueInfo_GetExternalInitializerInfo, 327);
CLV__ORT_PLACE(OrtApi, ValueInfo_IsConstantInitializer, 331);
CLV__ORT_PLACE(OrtApi, Graph_GetName, 333);
CLV__ORT_PLACE(OrtApi, Graph_GetParentNode, 346);
CLV__ORT_PLACE(OrtApi, Node_GetId, 348);
CLV__ORT_PLACE(OrtApi, Node_GetAttributes, 360);
CLV__ORT_PLACE(OrtApi, OpAttr_GetTensorAttributeAsOrtValue, 362);
CLV__ORT_PLACE(OrtApi, Node_GetSubgraphs, 366);
CLV__ORT_PLACE(OrtApi, ReleaseExternalInitializerInfo, 369);
CLV__ORT_PLACE(OrtApi, ExternalInitializerInfo_GetByteSize, 372);
CLV__ORT_PLACE(OrtApi, GetTensorData, 378);
CLV__ORT_PLACE(OrtApi, GetSessionOptionsConfigEntries, 379);
CLV__ORT_PLACE(OrtApi, TensorTypeAndShape_HasShape, 390);
CLV__ORT_PLACE(OrtApi, GetTensorElementTypeAndShapeDataReference, 414);
CLV__ORT_PLACE(OrtEpApi, CreateEpDevice, 0);
CLV__ORT_PLACE(OrtEpApi, EpGraphSupportInfo_AddNodesToFuse, 2);
CLV__ORT_PLACE(OrtEpApi, NodeComputeContext_NodeName, 4);
CLV__ORT_PLACE(OrtNodeComputeInfo, ReleaseState, 3);
CLV__ORT_PLACE(OrtEp, GetName, 1);
CLV__ORT_PLACE(OrtEp, ReleaseNodeComputeInfos, 4);
CLV__ORT_PLACE(OrtEp, GetKernelRegistry, 13);
CLV__ORT_PLACE(OrtEp, IsConcurrentRunSupported, 14);
CLV__ORT_PLACE(OrtEpFactory, CreateEp, 4);
CLV__ORT_PLACE(OrtEpFactory, GetVersion, 7);
CLV__ORT_PLACE(OrtEpFactory, IsStreamAware, 12);
CLV__ORT_PLACE(OrtEpFactory, GetCustomOpDomains, 17);
#undef CLV__ORT_PLACE

typedef struct OrtApiBase {
  const OrtApi *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

#endif
