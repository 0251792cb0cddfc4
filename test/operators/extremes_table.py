"""Prints extremes.txt: a line for each case of extremes.c with PyTorch's result and gradients. Needs PyTorch, which no test does; run it when cases change."""
import math

import torch
import torch.nn.functional as F
torch.manual_seed(0)
inf=math.inf; nan=math.nan
V=[0.0,-0.0,1e-30,-1e-30,88,-88,1e4,-1e4,3e38,-3e38,inf,-inf,nan,1,-1,0.5]
N=16
t=lambda a:torch.tensor(a,dtype=torch.float32)
v=t(V)
def rows(w,at,base=(0.5,-1,2,0.25,1.5,-0.75,3,-2)):
    x=t([[base[j] for j in range(w)] for _ in V]); x[:,at]=v; return x
def weights(shape):
    n=1
    for s in shape:n*=s
    return t([((i*7)%5-1.5)*0.4 for i in range(n)]).reshape(shape)
def show(name,xs,f,mask=None):
    xs=[x.clone().requires_grad_(True) for x in xs]
    y=f(*xs)
    (y*weights(y.shape)).sum().backward() if y.requires_grad else None
    out(name+"_y",y)
    for k,x in enumerate(xs):
        out(f"{name}_d{k}",x.grad if x.grad is not None else torch.zeros_like(x))
def num(f):
    if math.isnan(f): return "nan"
    if math.isinf(f): return "inf" if f>0 else "-inf"
    s="%.8g"%f
    return s
def skip(name,text):
    """Where PyTorch's NaN comes of its own way to compute: a target that is ignored, and 2 * 3e38 in the derivative of a square."""
    if name=="cross_entropy_ignored_d0": return text.replace("nan","?")
    if name=="rms_norm_d0": 
        t=text.split(" "); t[8*8+2]=t[9*8+2]="?"; return " ".join(t)
    return text
def out(name,y):
    y=y.detach().float().reshape(-1).tolist()
    print(f"{name}: "+skip(name," ".join(num(a) for a in y)))
silu=F.silu
gelu=lambda x:F.gelu(x,approximate="tanh")
for n,f in dict(scale=lambda x:-2.5*x,relu=F.relu,relu_steep=lambda x:inf*F.relu(x),gelu=gelu,silu=silu,exp=torch.exp,cast_bf16=lambda x:x.bfloat16().float(),cast_f64=lambda x:x.double().float()).items(): show(n,[v],f)
a=v.reshape(16,1).expand(16,16); b=v.reshape(1,16).expand(16,16)
for n,f in dict(add=torch.add,sub=torch.sub,mul=torch.mul,div=torch.div).items(): show(n,[a,b],f)
show("sum",[rows(8,2)],lambda x:x.sum(-1))
show("mean",[rows(8,2)],lambda x:x.mean(-1))
X=rows(8,2)
show("softmax",[X],lambda x:F.softmax(x,-1))
w=t([1,-2,0.5,3,1.5,-1,2,0.75]); bb=t([0.5,0,1,-1,2,3,-2,1])
show("layer_norm",[X,w,bb],lambda x,w,b:F.layer_norm(x,(8,),w,b,1e-5))
show("layer_norm_weight",[rows(16,3,[((i*3)%7)-2.5 for i in range(16)])[13:15],v],lambda x,w:F.layer_norm(x,(16,),w,None,1e-5))
show("rms_norm",[X,w],lambda x,w:F.rms_norm(x,(8,),w,1e-5))
show("l2_norm",[X],lambda x:F.normalize(x,p=2,dim=-1,eps=1e-6))
show("row_max",[X],lambda x:x.detach().amax(-1))
for nm,tg in (("hit",2),("miss",0),("ignored",-100)):
    show("cross_entropy_"+nm,[X],lambda x:F.cross_entropy(x,torch.full((16,),tg),reduction="none"))
show("cross_entropy_same",[v.reshape(16,1).expand(16,3)],lambda x:F.cross_entropy(x,torch.full((16,),1),reduction="none"))
w3=t([[1,-2,0.5],[0.25,3,-1]])
show("linear",[rows(3,1),w3],F.linear)
show("linear_weight",[w3,rows(3,1),v],F.linear)
show("matmul",[w3,rows(3,1).t().contiguous()],torch.matmul)
def at(shape,idx):
    n=1
    for s in shape[1:]:n*=s
    x=t([((i*5)%7-3)*0.25 for i in range(n)]).reshape(shape[1:]).expand(shape).clone()
    x[(slice(None),)+idx]=v
    return x
shape=(16,3,1,2)
base=at(shape,(0,0,0))
base[:,0,0,0]=-0.5
def att(causal):
    def f(q,k,v):
        q,k,v=(z.transpose(1,2) for z in (q,k,v))
        s=(q@k.transpose(-1,-2))/math.sqrt(2)
        if causal: s=s.masked_fill(~torch.ones(3,3,dtype=torch.bool).tril(),-inf)
        return (F.softmax(s,-1)@v).transpose(1,2)
    return f
for c in (0,1):
    for o in range(3):
        xs=[base,base*2,base*-1.5]; xs[o]=at(shape,(2 if c else 1,0,0))
        show(f"attention_{'causal' if c else 'whole'}_{'qkv'[o]}",xs,att(c))
