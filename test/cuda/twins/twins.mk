# twins.mk: the tests of kernels for a machine with a GPU, without MPI, OpenBLAS and CMake. In the root of the sources:
#
#     make -f test/cuda/twins/twins.mk BUILD=/tmp/twins -j
#     /tmp/twins/twins /tmp/twins/libcpu.so         every kernel against its twin on the CPU
#     /tmp/twins/attention /tmp/twins/libcpu.so     attention against sums in double; --fused: on slices of one tensor, which HETU_ATTENTION=cudnn shows of cuDNN's
#     /tmp/twins/speed                              how fast they are
#     /tmp/twins/attention_speed                    how fast attention is
#
# WRITTEN is where a build wrote what the operators' rules say. ARCH=sm_90: for these GPUs; without it for this machine's. OpenBLAS is used where pkg-config finds it.
BUILD ?= build/twins
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc)
ARCH ?= native
NVCCFLAGS ?= -std=c++20 -O3 -arch=$(ARCH) -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-missing-field-initializers
CFLAGS ?= -std=gnu17 -O3 -fno-math-errno -fno-trapping-math -fopenmp -fPIC -Wall -Wextra
WRITTEN ?= $(firstword $(wildcard build/*/share/hetu/runtime))
INCLUDES := -Iinclude -Iruntime $(addprefix -I,$(WRITTEN)) -Itest/cuda/twins

# cuBLAS is a part of CUDA, or a package of pip.
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
ifeq ($(wildcard $(addsuffix /include/cublasLt.h,$(CUDA_HOME) /usr /usr/local)),)
CUBLAS_HOME ?= $(patsubst %/include/cublasLt.h,%,$(firstword $(wildcard \
  $(addsuffix /*/include/cublasLt.h,$(shell python3 -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null)))))
endif
ifneq ($(CUBLAS_HOME),)
INCLUDES += -isystem $(CUBLAS_HOME)/include
CUBLAS := -Xlinker -rpath,$(CUBLAS_HOME)/lib -Xlinker $(lastword $(sort $(wildcard $(CUBLAS_HOME)/lib/libcublasLt.so*)))
endif
CUBLAS ?= -lcublasLt

# cuDNN from 9.16 on, as in runtime/program.mk.
CUDNN_HOME ?= $(patsubst %/include/cudnn_graph.h,%,$(firstword $(wildcard $(addsuffix /include/cudnn_graph.h,$(CUDA_HOME) /usr /usr/local)) \
  $(wildcard $(shell python3 -c 'import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])' 2>/dev/null)/include/cudnn_graph.h)))
cudnn_version := $(if $(CUDNN_HOME),$(shell awk '/define CUDNN_MAJOR/ {v += 10000 * $$3} /define CUDNN_MINOR/ {v += 100 * $$3} END {print v + 0}' \
  $(CUDNN_HOME)/include/cudnn_version.h 2>/dev/null))
CUDNN ?= $(if $(shell test "$(cudnn_version)" -ge 91600 2>/dev/null && echo found),1,0)
ifeq ($(CUDNN),1)
CUDNN_FLAGS := -DHETU_CUDNN -isystem $(CUDNN_HOME)/include
CUDNN_LIBRARY := -L$(CUDNN_HOME)/lib -Xlinker -rpath,$(CUDNN_HOME)/lib -l:libcudnn.so.9
endif

HERE := test/cuda/twins
KERNELS := $(addprefix runtime/cuda/,$(addsuffix .cu,autotune casts contract convolution \
  cross_entropy dropout embedding gradient_norm indexing matmul norm optimizer product rope shape softmax))
ATTENTION := $(wildcard runtime/cuda/attention*.cu $(if $(filter 1,$(CUDNN)),runtime/cuda/cudnn*.cu))
CPU := $(filter-out runtime/cpu/device.c,$(wildcard runtime/cpu/*.c)) \
  runtime/device/contraction.c runtime/base/random.c runtime/exchange/copy_boxes.c
BLAS := $(shell pkg-config --libs openblas 2>/dev/null)
BLAS_CFLAGS := $(if $(BLAS),$(shell pkg-config --cflags openblas),-I$(HERE)/blas)

objects = $(patsubst %,$(BUILD)/%.o,$(1))

.PHONY: all
all: $(addprefix $(BUILD)/,twins speed attention attention_speed libcpu.so)

$(BUILD)/twins: $(call objects,$(filter-out %/speed.cu,$(wildcard $(HERE)/*.cu)) $(KERNELS) runtime/device/contraction.c)
	$(NVCC) -arch=$(ARCH) -o $@ $^ $(CUBLAS) -ldl

$(BUILD)/speed: $(call objects,$(HERE)/speed.cu $(HERE)/host.cu $(KERNELS) runtime/device/contraction.c)
	$(NVCC) -arch=$(ARCH) -o $@ $^ $(CUBLAS)

$(BUILD)/attention: $(call objects,test/cuda/attention/attention_twin.cu $(ATTENTION))
	$(NVCC) -arch=$(ARCH) -o $@ $^ $(CUDNN_LIBRARY) -ldl

$(BUILD)/attention_speed: $(call objects,test/cuda/attention/attention_speed.cu $(ATTENTION))
	$(NVCC) -arch=$(ARCH) -o $@ $^ $(CUDNN_LIBRARY) -ldl

$(BUILD)/libcpu.so: $(call objects,$(CPU) $(HERE)/blas/fail.c $(if $(BLAS),,$(HERE)/blas/blas.c))
	$(CC) -shared -fopenmp -Wl,-z,defs -o $@ $^ $(BLAS) -lm

$(BUILD)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $(INCLUDES) $(CUDNN_FLAGS) -c $< -o $@

$(BUILD)/%.c.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(INCLUDES) $(BLAS_CFLAGS) -c $< -o $@
