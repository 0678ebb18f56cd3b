"""Small valid models in the formats of other programs."""

from __future__ import annotations

LIBSVM = b"""\
svm_type c_svc
kernel_type polynomial
degree 2
gamma 0.5
coef0 1
nr_class 3
total_sv 4
rho 0.1 0.2 0.3
label 5 -1 2
probA -1 -2 -3
probB 0 0.5 1
nr_sv 1 2 1
SV
0.5 0.25 1:1 3:2.5
-0.5 0.125 2:1
-0.25 0 1:1 2:-1
-0.25 -1 3:1
"""
SVR = b"""\
svm_type epsilon_svr
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.5
SV
1 1:1
-1 2:1
"""
PRECOMPUTED = SVR.replace(b"rbf\ngamma 0.5", b"precomputed").replace(b"1:1", b"0:1").replace(b"2:1", b"0:7")
LIBLINEAR = b"""\
solver_type L2R_LR
nr_class 3
label 5 -1 2
nr_feature 2
bias 1
w
0.5 0.25 1
-1 0 2
0.125 0.5 -3
"""
SVMLIGHT = b"""\
SVM-light Version V6.20
1 # kernel type
2 # kernel parameter -d
1 # kernel parameter -g
0.5 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
3 # highest feature index
10 # number of training documents
3 # number of support vectors plus 1
0.25 # threshold b, each following line is a SV (starting with alpha*y)
0.5 1:1 3:2 #
-0.5 2:1 # a remark, \xc3\xbc and \x00 \n"""
TINYSVM = b"""\
TinySVM Version 0.09
1 # kernel type
2 # kernel parameter -d
1 # kernel parameter -g
0.5 # kernel parameter -s
1 # kernel parameter -r
empty # kernel parameter -u
3 1 10 1.5 # number of SVs/BSVs/number of training data/L1 loss
0.25 # threshold b
0.5 1:1 3:2
-0.5 2:1
"""
OPAL = b"""opal # $Id: of some version $
1 # kernel type
2 # kernel parameter -d
1 # kernel parameter -s
1 # kernel parameter -r
-1.5 # sigmoid -A
0.25 # sigmoid -B
0 # threshold b
0.5 1:1 3:1
-0.5 2:1
"""
OPAL_MANY = b"""opal # $Id: of some version $
3 # labels: 7 8 9
1 # kernel type
2 # kernel parameter -d
1 # kernel parameter -s
1 # kernel parameter -r
0 0 0 # threshold b
0.5 0 -0.5 1:1 3:1
-0.5 0.25 0.25 2:1
"""
VALID_MODELS = {
    "opal": OPAL,
    "opal of many classes": OPAL_MANY,
    "libsvm": LIBSVM,
    "svr": SVR,
    "precomputed": PRECOMPUTED,
    "liblinear": LIBLINEAR,
    "svmlight": SVMLIGHT,
    "tinysvm": TINYSVM,
}
