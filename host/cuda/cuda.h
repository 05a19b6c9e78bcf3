#pragma once
// The C interface of libkf-cuda.so, looked up with dlsym.

extern "C" {

/// Called once for each device, in order.
using KfCudaDevice = void (*)(void* user, int index, const char* name, unsigned long long bytes, int major, int minor);

/// Reports the devices that torch sees and returns their number; 0 with a driver but no device, -1 when the driver does not answer (then
/// `error` holds the reason, ended by 0).
using KfCudaOpen = int (*)(KfCudaDevice report, void* user, char* error, unsigned long size);
}
