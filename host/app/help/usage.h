#pragma once
// What `kf-host COMMAND --help` prints: here, beside no command's code, because the launcher prints it without torch (app/help/help.h).

namespace kf::usage {

extern const char* const kTrain;  // the sections of settings follow it
extern const char* const kGenerate;
extern const char* const kEval;
extern const char* const kConfig;
extern const char* const kPlan;
extern const char* const kProfile;
extern const char* const kNew;
extern const char* const kDoctor;
extern const char* const kData;
extern const char* const kDataInfo;
extern const char* const kDataCache;
extern const char* const kTokenizer;
extern const char* const kExport;
extern const char* const kAdapter;
extern const char* const kCheckpoint;
extern const char* const kSweep;
extern const char* const kReplay;
extern const char* const kAttach;
extern const char* const kReload;
extern const char* const kRuns;
extern const char* const kPlot;
extern const char* const kCompare;
extern const char* const kTail;
extern const char* const kReproduce;
extern const char* const kBundle;
extern const char* const kReport;
extern const char* const kServe;
extern const char* const kRegistry;
extern const char* const kTest;
extern const char* const kLua;
extern const char* const kCompletion;

}  // namespace kf::usage
