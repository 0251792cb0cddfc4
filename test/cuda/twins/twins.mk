# twins.mk: the tests of kernels for a machine with a GPU, without MPI, OpenBLAS and CMake. In the root of the sources:
#
#     make -f test/cuda/twins/twins.mk BUILD=/tmp/twins -j
#     /tmp/twins/twins /tmp/twins/libcpu.so         every kernel against its twin on the CPU
#     /tmp/twins/attention /tmp/twins/libcpu.so     attention against sums in double
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

HERE := test/cuda/twins
KERNELS := $(addprefix runtime/cuda/,$(addsuffix .cu,choice contract dropout matmul norm optimizer product rope shape softmax table))
ATTENTION := $(wildcard runtime/cuda/attention*.cu)
CPU := $(addprefix runtime/cpu/,$(addsuffix .c,attention cpu norm optimizer product rope rows shape softmax table typed_product)) \
  runtime/device/contraction.c runtime/base/random.c
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
	$(NVCC) -arch=$(ARCH) -o $@ $^ -ldl

$(BUILD)/attention_speed: $(call objects,test/cuda/attention/attention_speed.cu $(ATTENTION))
	$(NVCC) -arch=$(ARCH) -o $@ $^ -ldl

$(BUILD)/libcpu.so: $(call objects,$(CPU) $(HERE)/blas/fail.c $(if $(BLAS),,$(HERE)/blas/blas.c))
	$(CC) -shared -fopenmp -o $@ $^ $(BLAS) -lm

$(BUILD)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $(INCLUDES) -c $< -o $@

$(BUILD)/%.c.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(INCLUDES) $(BLAS_CFLAGS) -c $< -o $@
