// What Go asks of bcryptprimitives.dll, which Wine lacks before version 9: bytes that nobody can guess.
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) { return RtlGenRandom(data, (ULONG)length); }
