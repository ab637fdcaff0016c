#!/bin/bash
# The first process of a guest: Linux as a process (user-mode-linux) whose root is this machine's.
# A kernel NFS server exports a folder in memory, and the kernel's client mounts it twice, each mount
# with caches of its own. Usage of the kernel's command line: packages=FOLDER options=MOUNTOPTIONS
# script=COMMAND. What the command prints stands between the lines BEGIN and END.
mount -t proc proc /proc
for word in $(cat /proc/cmdline); do
  case $word in packages=*|options=*|script=*) declare "${word%%=*}=${word#*=}" ;; esac
done
export PATH=$packages/usr/sbin:$packages/sbin:/usr/sbin:/usr/bin:/sbin:/bin
export LD_LIBRARY_PATH=$packages/usr/lib/x86_64-linux-gnu:$packages/lib/x86_64-linux-gnu
mount -t sysfs sysfs /sys
for folder in /run /mnt /var/lib; do mount -t tmpfs tmpfs $folder; done
export TMPDIR=/run
mkdir -p /run/export /mnt/a /mnt/b /var/lib/nfs/v4recovery
mount -t tmpfs tmpfs /run/export
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
ip link set lo up
for module in nfs nfsv4 nfsd; do "$packages/bin/modprobe" -d "$packages/usr" $module; done
mount -t nfsd nfsd /proc/fs/nfsd
rpc.mountd -N 3
exportfs -o rw,no_root_squash,insecure,fsid=0,no_subtree_check,sync '*:/run/export'
rpc.nfsd -N 3 -V 4 -U 4
for client in a b; do
  mount -i -t nfs4 -o "addr=127.0.0.1,clientaddr=127.0.0.1,vers=4.2,nosharecache$options" \
    127.0.0.1:/ /mnt/$client
done
echo BEGIN
${script//,,/ }
echo END
sync
exec python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)'
