# cuda.mk: what a program for CUDA needs beside program.mk.
#
#     make ARCH="sm_80 sm_90"   for these GPUs, and later ones, which compile the PTX of the last when
#                               they start; ARCH=native: for this machine's alone, which is the default
#                               where there is one
#     make NCCL=0 NVTX=0        without NCCL, or NVTX (names in profilers), though they are there
#     make CUDNN=0              without cuDNN's attention, though cuDNN (9.16 or later) is there
#
# CUDA_HOME, CUBLAS_HOME, NCCL_HOME and CUDNN_HOME say where CUDA, cuBLAS, NCCL and cuDNN are, NVCC
# which compiler runs.

# ---- what is installed ----

NVCC ?= $(firstword $(call found,nvcc) $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc) nvcc)
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(realpath $(firstword $(call found,$(firstword $(NVCC))) $(NVCC))))

# cuBLAS is a part of CUDA, or a package of pip.
ifeq ($(wildcard $(addsuffix /include/cublasLt.h,$(CUDA_HOME) /usr /usr/local)),)
CUBLAS_HOME ?= $(patsubst %/include/cublasLt.h,%,$(firstword $(wildcard \
  $(addsuffix /*/include/cublasLt.h,$(shell python3 -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null)))))
endif

ifneq ($(filter-out 1,$(RANKS)),)
nccl_header := $(firstword $(wildcard $(addsuffix /include/nccl.h,$(NCCL_HOME) $(CUDA_HOME) /usr /usr/local)) \
  $(wildcard $(shell python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>/dev/null)/include/nccl.h))
NCCL_HOME ?= $(patsubst %/include/nccl.h,%,$(nccl_header))
NCCL ?= $(if $(nccl_header),1,0)
endif
NCCL ?= 0

NVTX ?= $(if $(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExt.h),1,0)

# The version of the cuDNN whose header was found, as one number: 91600 is 9.16.
cudnn_header := $(firstword $(wildcard $(addsuffix /include/cudnn_graph.h,$(CUDNN_HOME) $(CUDA_HOME) /usr /usr/local)) \
  $(wildcard $(shell python3 -c 'import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])' 2>/dev/null)/include/cudnn_graph.h))
CUDNN_HOME ?= $(patsubst %/include/cudnn_graph.h,%,$(cudnn_header))
cudnn_version := $(if $(cudnn_header),$(shell awk '/define CUDNN_MAJOR/ {v += 10000 * $$3} /define CUDNN_MINOR/ {v += 100 * $$3} END {print v + 0}' \
  $(CUDNN_HOME)/include/cudnn_version.h 2>/dev/null))
CUDNN ?= $(if $(shell test "$(cudnn_version)" -ge 91600 2>/dev/null && echo found),1,0)

ifndef ARCH
ARCH := $(if $(shell nvidia-smi -L 2>/dev/null),native,sm_80 sm_90)
endif

# ---- options ----

DEFINES += $(if $(filter 1,$(NCCL)),-DHETU_NCCL) $(if $(filter 1,$(NVTX)),-DHETU_NVTX) $(if $(filter 1,$(CUDNN)),-DHETU_CUDNN)
ifneq ($(CUBLAS_HOME),)
CUBLAS_HEADERS := -isystem $(CUBLAS_HOME)/include
CUBLAS_LIBRARIES := -Wl,-rpath,$(CUBLAS_HOME)/lib $(lastword $(sort $(wildcard $(CUBLAS_HOME)/lib/libcublasLt.so*)))
endif
CUBLAS_LIBRARIES ?= -lcublasLt
CUDA_LIBRARIES ?= -L$(CUDA_HOME)/lib64 -L$(CUDA_HOME)/lib -Wl,-rpath,$(CUDA_HOME)/lib64 $(CUBLAS_LIBRARIES) -lcudart_static -ldl -lrt
LIBRARIES += $(CUDA_LIBRARIES)
ifeq ($(NCCL),1)
NCCL_HEADERS ?= $(if $(filter-out /usr $(CUDA_HOME),$(NCCL_HOME)),-I$(NCCL_HOME)/include)
NCCL_LIBRARIES ?= -L$(NCCL_HOME)/lib -Wl,-rpath,$(NCCL_HOME)/lib -l:libnccl.so.2
HEADERS += $(NCCL_HEADERS)
LIBRARIES += $(NCCL_LIBRARIES)
endif
ifeq ($(CUDNN),1)
CUDNN_HEADERS ?= $(if $(filter-out /usr $(CUDA_HOME),$(CUDNN_HOME)),-isystem $(CUDNN_HOME)/include)
CUDNN_LIBRARIES ?= -L$(CUDNN_HOME)/lib -Wl,-rpath,$(CUDNN_HOME)/lib -l:libcudnn.so.9
HEADERS += $(CUDNN_HEADERS)
LIBRARIES += $(CUDNN_LIBRARIES)
endif

code = $(subst sm_,,$(1))
named = $(sort $(filter-out native,$(ARCH)))
newest = $(lastword $(sort $(foreach arch,$(named),$(if $(filter sm_1%,$(arch)),1,0):$(arch))))
GENCODE := $(if $(filter native,$(ARCH)),-arch=native) \
  $(foreach arch,$(named),-gencode arch=compute_$(call code,$(arch)),code=$(arch)) \
  $(foreach arch,$(call code,$(lastword $(subst :, ,$(newest)))),-gencode arch=compute_$(arch),code=compute_$(arch))
ifdef WERROR
NVCC_WERROR := -Werror all-warnings
endif
comma := ,
empty :=
NVCCFLAGS ?= $(GENCODE) $(NVCC_WERROR) -Xcompiler $(subst $(empty) ,$(comma),$(WARNINGS) -Wno-missing-field-initializers)
CFLAGS_ALL += -O2
LINK ?= $(CXX)

ABSENT += $(if $(filter 1,$(NCCL)),,runtime/cuda/nccl%) $(if $(filter 1,$(CUDNN)),,runtime/cuda/cudnn%)

# What the objects of the runtime are made of, too: for -arch=native the GPU.
BACKEND_MADE = $(NVCC) $(NVCCFLAGS) $(CUBLAS_HEADERS) $(cudnn_version)
BACKEND_VERSION = $(NVCC) --version; $(if $(filter native,$(ARCH)),nvidia-smi --query-gpu=name --format=csv$(comma)noheader;)
