/* small_experts.h - a small transformer with so many experts, whose figures closed forms take. */
#ifndef DL_TESTS_SMALL_EXPERTS_H
#define DL_TESTS_SMALL_EXPERTS_H

#define LAYERS 2
#define HIDDEN 64
#define SEQ 64
#define SAMPLES 2
#define TOP_K 2
#define SMALL_EXPERTS(n, more)                                                                                         \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,'seq':64,"  \
    "'vocab':512,'experts':" n ",'top_k':2,'bias':false" more "}"

#endif
